"""The learned symmetric layer as a literal circuit, whose numbers can be read head by head."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.heads import Numbers
from lloydformer.circuits.subspaces import Space
from lloydformer.circuits.symmetric import WRITTEN, SymmetricModulator, count_numbers
from lloydformer.learning.symmetric.layer import (
    INVARIANTS,
    TEMPERATURES,
    Frame,
    NumberLayout,
    invariants_of_points,
    two_nearest,
)
from lloydformer.numerics.clusters import squared_distances
from lloydformer.plans.symmetric import FLOOR


@dataclass(frozen=True)
class LearnedModulation:
    """Numbers that are linear in the invariants: `lf.recipes.symmetric(LearnedModulation(...))`.

    `weights`: those of the invariants, for each of the `numbers` in order.
    """

    weights: tuple[float, ...]
    numbers: NumberLayout = field(default_factory=NumberLayout)
    subspaces = WRITTEN

    def __post_init__(self) -> None:
        numbers, wanted = self.numbers, self.numbers.count * len(INVARIANTS)
        if len(self.weights) != wanted:
            raise ValueError(
                f"weights: found {len(self.weights)}; {numbers.n_heads} heads and "
                f"{numbers.n_apart} apart need {wanted}"
            )

    @property
    def kinds(self) -> dict[str, int]:
        return count_numbers(self.numbers.n_heads, self.numbers.n_apart)

    def build(self, space: Space) -> "LearnedModulator":
        return LearnedModulator(self, space)


class LearnedModulator(SymmetricModulator):
    """Compute the invariants of the tokens, and from them and `weights` (p, f) the numbers.

    Inverse temperatures apply to plain squared distances: they are divided by the unit, the mean
    squared distance of a point to its nearest center.
    """

    weights: Tensor

    def __init__(self, learned: LearnedModulation, space: Space) -> None:
        super().__init__(learned.kinds, space)
        self.layout = learned.numbers
        theta = torch.tensor(learned.weights, dtype=torch.float64)
        self.register_buffer("weights", theta.view(-1, len(INVARIANTS)))
        self.invariants = nn.Identity()

    def numbers(self, points: Tensor, centers: Tensor, time: float) -> Numbers:
        batch = points.shape[:-2]
        x, c = (rows.reshape(-1, *rows.shape[-2:]) for rows in (points, centers))
        z, closeness = measure_invariants(x, c, time)
        z = self.invariants(z.reshape(*batch, *z.shape[1:]))
        z = z.reshape(-1, 1, *z.shape[-2:])  # (b, 1, k, f)
        numbers = self.layout.evaluate(self.weights.to(points).unsqueeze(0), z)
        numbers["sharpness"] = numbers["sharpness"].unsqueeze(2)
        for kind in TEMPERATURES:
            numbers[kind] = numbers[kind] * closeness.unsqueeze(1)
        numbers["closeness"] = closeness.unsqueeze(1)
        return {
            kind: value[:, 0].reshape(*batch, *value.shape[2:]) for kind, value in numbers.items()
        }


def measure_invariants(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b k d"], time: float
) -> tuple[Float[Tensor, "b k f"], Float[Tensor, "b 1 1"]]:
    """Return the invariants, and `closeness`: 1 over the unit of squared distances."""
    frame = Frame.of(points)
    x, c = frame.inside(points), frame.inside(centers)
    near = two_nearest(squared_distances(c, x).unsqueeze(1))
    unit = (near.first.mean(dim=-1, keepdim=True) + FLOOR) * frame.unit.square()
    return invariants_of_points(near, x, time)[:, 0], 1 / unit
