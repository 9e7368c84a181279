"""The symmetric layer as a function of flat weights: many runs at once, on the same tasks.

In order: the invariants of a clustering state, which do not change under rotation, shift and scale
of the points, nor under permutation of the points or centers; `NumberLayout`, the kinds of numbers
that a step uses, each a linear function of the invariants, and their places in the flat weights;
`Frame` and `SymmetricLayer`, the step itself.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.symmetric import NEAR, count_numbers
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.clusters import squared_distances
from lloydformer.plans.symmetric import FLOOR

# The invariants and the range of each; the last two are properties of a single center.
#
# - cost: log of the mean squared distance to the nearest center, in units of the mean squared
#   distance to the mean.
# - clusters: log of k / 10.
# - margin: log of the mean squared distance to the second nearest center over that to the nearest.
# - gap: log of the difference of these two over the latter. In many dimensions distances differ
#   little, and heads must be sharper.
# - time: 0 in the first step, 1 in the last.
# - tail: log of the mean fourth power of the distance to the mean.
# - members, share: log of k times the center's fraction of the points, and of the cost.
#
# A range covers most tasks and was chosen by hand. It is mapped to [-1, 1]; values outside are
# clamped, so that data unlike any task of training cannot drive the numbers far from what was
# learned.
RANGES = {
    "cost": (-3.0, 0.0),
    "clusters": (-1.2, 1.8),
    "margin": (0.0, 2.0),
    "gap": (-4.0, 2.0),
    "time": (0.0, 1.0),
    "tail": (0.0, 3.0),
    "members": (-2.0, 1.0),
    "share": (-2.0, 1.5),
}

# Names of the invariants in order; the first is the constant 1.
INVARIANTS = ("one", *RANGES)

# The last ones belong to a center and not to the whole problem.
N_OF_CENTER = 2

# Kinds of numbers that are inverse temperatures, and the upper bound of their logarithms; with it
# softmax is practically argmax, and the exponential is far from an overflow.
TEMPERATURES = ("sharpness", "apart_sharpness")
_SHARPEST = 12.0

# Added to a center's fraction, so that the logarithm of an empty cluster is finite.
_LEAST = 0.05


class InvariantInputs(NamedTuple):
    """The means over the points that invariants are computed from, in the units of a `Frame`.

    Attributes
    ----------
    nearest, second : Tensor of shape (b, r)
        Mean squared distance to the nearest and to the second nearest center.
    gap : Tensor of shape (b, r)
        Mean difference of the two.
    members : Tensor of shape (b, r, k)
        Fraction of the points that belong to each center.
    costs : Tensor of shape (b, r, k)
        k times each center's part of `nearest`.
    tail : Tensor of shape (b,)
        Log of the mean fourth power of the distance to the mean.
    """

    nearest: Float[Tensor, "b r"]
    second: Float[Tensor, "b r"]
    gap: Float[Tensor, "b r"]
    members: Float[Tensor, "b r k"]
    costs: Float[Tensor, "b r k"]
    tail: Float[Tensor, " b"]


class NearestCenters(NamedTuple):
    """Squared distances to the two nearest centers; `own`: 1 for the nearest center, else 0."""

    first: Float[Tensor, "b r n"]
    second: Float[Tensor, "b r n"]
    own: Float[Tensor, "b r k n"]


def two_nearest(squares: Float[Tensor, "b r k n"]) -> NearestCenters:
    """Find the two nearest centers; with one center the second is the first."""
    k = squares.shape[2]
    first, which = squares.min(dim=2)
    own = torch.arange(k, device=squares.device)[:, None] == which.unsqueeze(2)
    second = squares.masked_fill(own, torch.inf).min(dim=2).values if k > 1 else first
    return NearestCenters(first, second, own.to(squares.dtype))


def invariants_of_points(
    near: NearestCenters, points: Float[Tensor, "b n d"], time: float
) -> Float[Tensor, "b r k f"]:
    """Return the invariants of a state, in the order of `INVARIANTS`, without a gradient."""
    k, n = near.own.shape[2:]
    inputs = InvariantInputs(
        nearest=near.first.mean(dim=-1),
        second=near.second.mean(dim=-1),
        gap=(near.second - near.first).mean(dim=-1),
        members=near.own.mean(dim=-1),
        costs=(near.own @ near.first.unsqueeze(-1)).squeeze(-1) * (k / n),
        tail=points.square().sum(dim=-1).square().mean(dim=-1).log(),
    )
    # over many steps the gradient through the invariants would be a long product
    return invariants_of_means(inputs, time).detach()


def invariants_of_means(inputs: InvariantInputs, time: float) -> Float[Tensor, "b r k f"]:
    """Return the invariants from means over the points, which a fold computes."""
    k = inputs.members.shape[2]
    cost = inputs.nearest + FLOOR
    one = torch.ones_like(cost)
    of_problem = [
        cost.log(),
        math.log(k / 10) * one,
        ((inputs.second + FLOOR) / cost).log(),
        ((inputs.gap + FLOOR) / cost).log(),
        time * one,
        inputs.tail[:, None] * one,
    ]
    members, share = inputs.members * k, inputs.costs / cost.unsqueeze(-1)
    values = [value.unsqueeze(-1).expand_as(members) for value in of_problem]
    values += [(members + _LEAST).log(), (share + _LEAST).log()]
    within = [
        ((2 * value - low - high) / (high - low)).clamp(-1, 1)
        for value, (low, high) in zip(values, RANGES.values(), strict=True)
    ]
    return torch.stack([torch.ones_like(members), *within], dim=-1)


@dataclass(frozen=True)
class NumberLayout:
    r"""The numbers that one step uses: one for each head, or for each pair of heads.

    Each number is linear in the invariants, $\theta^\top z$, so the same weights serve wide and
    narrow clusters, first and last steps. Inverse temperatures are the exponential of that, so
    that they stay positive. `n_heads`: decoder cross-attention heads. `n_apart`: decoder
    self-attention heads.
    """

    n_heads: int = 4
    n_apart: int = 2

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Number of numbers of each kind, in order."""
        sizes = count_numbers(self.n_heads, self.n_apart)
        # the layer computes these two itself, and nothing is learned for them
        return {kind: n for kind, n in sizes.items() if kind not in ("closeness", "kept")}

    @property
    def count(self) -> int:
        """Number of all numbers."""
        return sum(self.sizes.values())

    def rows(self, name: str) -> slice:
        """Return the positions of a kind among all numbers."""
        names = list(self.sizes)
        start = sum(self.sizes[n] for n in names[: names.index(name)])
        return slice(start, start + self.sizes[name])

    def evaluate(
        self, theta: Float[Tensor, "r p f"], invariants: Float[Tensor, "b r k f"]
    ) -> dict[str, Float[Tensor, "b r ..."]]:
        """Return the numbers of each center by kind, (b, r, k, m).

        The sharpness, (b, r, m), has no axis of centers: soft-max over the centers needs one for
        all of them, so it is computed without the invariants of a center.
        """
        values = torch.einsum("rpf,brkf->brkp", theta, invariants)
        parts = torch.split(values, list(self.sizes.values()), dim=-1)
        numbers = dict(zip(self.sizes, parts, strict=True))
        common = slice(None, len(INVARIANTS) - N_OF_CENTER)
        rows, z = theta[:, self.rows("sharpness"), common], invariants[:, :, 0, common]
        numbers["sharpness"] = torch.einsum("rpf,brf->brp", rows, z)
        for kind in TEMPERATURES:
            numbers[kind] = numbers[kind].clamp(max=_SHARPEST).exp()
        return numbers


class Frame(NamedTuple):
    """Coordinates of a problem: the mean of its points, and the root mean square distance to it."""

    mean: Float[Tensor, "b 1 d"]
    unit: Float[Tensor, "b 1 1"]

    @classmethod
    def of(cls, points: Float[Tensor, "b n d"]) -> "Frame":
        """Return the frame of each problem; the unit of points that are all equal is 1."""
        mean = points.mean(dim=1, keepdim=True)
        unit = (points - mean).square().sum(dim=-1).mean(dim=-1).sqrt()[:, None, None]
        return cls(mean, torch.where(unit > 0, unit, 1.0))

    def inside(self, rows: Float[Tensor, "b m d"]) -> Float[Tensor, "b m d"]:
        """Return rows in these coordinates, free of shift and scale."""
        return (rows - self.mean) / self.unit

    def outside(self, rows: Float[Tensor, "b m d"]) -> Float[Tensor, "b m d"]:
        """Return rows in the original coordinates, the inverse of `inside`."""
        return rows * self.unit + self.mean


@dataclass(frozen=True)
class SymmetricLayer:
    r"""One step in the coordinates of a `Frame`.

    A run has p * f weights, for the p numbers of `NumberLayout` and the f `INVARIANTS`. Let
    $D_{ij}$ be the squared distances, $r_i$ and $s_i$ those to the nearest and second nearest
    center, all in units of the mean of r. Encoder cross-attention:
    $p^h_{ij} = \sigma_j(-\gamma_h D_{ij})$. Decoder cross-attention: $\sigma_i(\sum_h y_{gh}
    p^h_{ij} + l_g \log p^g_{ij} - \delta_g D_{ij} + a_g \log r_i + b_g \log s_i)$; with these
    weights head g computes a mean of the points, and the center moves by $v_g$ times the
    difference to it. Decoder self-attention adds
    $w_h (c_j - \sum_l \sigma_l(-\gamma'_h |c_j - c_l|^2)\, c_l)$.

    `by_differences`: compute squared distances by differences, which is exact where a center
    equals a point. Otherwise by a product of matrices, which is faster and enough for training.
    """

    numbers: NumberLayout = field(default_factory=NumberLayout)
    by_differences: bool = False

    @property
    def n_weights(self) -> int:
        """Number of weights of a run."""
        return self.numbers.count * len(INVARIANTS)

    def __call__(
        self,
        weights: Float[Tensor, "r p"],
        points: Float[Tensor, "b n d"],
        centers: Float[Tensor, "b r k d"],
        time: float,
    ) -> Float[Tensor, "b r k d"]:
        """Return the centers after one step. `time`: from 0 in the first step to 1 in the last."""
        theta = weights.view(len(weights), self.numbers.count, len(INVARIANTS))
        squares = self._squared_distances(points, centers)  # (b, r, k, n)
        near = two_nearest(squares)
        at = self.numbers.evaluate(theta, invariants_of_points(near, points, time))
        # Distances in units of their mean: temperatures fall as the centers improve.
        unit = near.first.mean(dim=-1)[..., None, None] + FLOOR  # (b, r, 1, 1)
        log_near = (torch.stack([near.first, near.second], dim=2) / unit + NEAR).log()
        scores = self._scores(at, squares / unit, log_near)
        attention = scores.softmax(dim=-1).flatten(1, 3)
        means = (attention @ points).view(*scores.shape[:4], -1)  # (b, r, k, h, d)
        moved = (at["stride"].unsqueeze(-1) * (means - centers.unsqueeze(3))).sum(dim=3)
        # Added at once: autograd sums gradients in the reverse order of these operations, and
        # another order would give other bits of trained weights.
        moved = centers + moved
        # decoder self-attention: centers that are close to each other move apart
        flat, shape = centers.flatten(0, 1), centers.shape[:3]
        between = self._squared_distances(flat, flat.unsqueeze(1)).view(*shape, -1) / unit
        sharpness = at["apart_sharpness"].unsqueeze(-1)
        attention = (-sharpness * between.unsqueeze(3)).softmax(dim=-1)  # (b, r, k, a, k)
        weighted = (at["apart"].unsqueeze(-1) * attention).sum(dim=3)
        return moved + (weighted.sum(dim=-1, keepdim=True) * centers - weighted @ centers)

    def _squared_distances(
        self, points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
    ) -> Float[Tensor, "b r k n"]:
        if not self.by_differences:
            return distances_by_product(points, centers)
        return squared_distances(centers.flatten(1, 2), points).view(*centers.shape[:3], -1)

    def _scores(
        self, at: dict[str, Tensor], squares: Tensor, log_near: Tensor
    ) -> Float[Tensor, "b r k h n"]:
        """Return the scores of decoder cross-attention.

        `log_near`: log distances to the nearest and second nearest center, (b, r, 2, n).
        """
        h = self.numbers.n_heads
        wide = squares.unsqueeze(3)  # (b, r, k, 1, n)
        logs = (-at["sharpness"][:, :, None, :, None] * wide).log_softmax(dim=2)
        # The terms of all heads are one product of matrices: (h, 2h + 1) times (2h + 1, n).
        belonging = at["belonging"].view(*squares.shape[:3], h, h)
        own, distance = at["log_belonging"].diag_embed(), -at["distance"].unsqueeze(-1)
        factors = torch.cat([belonging, own, distance], dim=-1)  # (b, r, k, h, 2h + 1)
        scores = factors @ torch.cat([logs.exp(), logs, wide], dim=3)
        by_nearness = torch.stack([at["nearest"], at["second"]], dim=-1)  # (b, r, k, h, 2)
        return scores + (by_nearness.flatten(2, 3) @ log_near).view_as(scores)


def distances_by_product(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r k n"]:
    """Return squared distances, by one product of matrices for the centers of all runs."""
    products = centers.flatten(1, 2) @ points.mT
    norms = points.square().sum(dim=-1)[:, None, None]
    expanded = norms - 2 * products.view(*centers.shape[:3], -1)
    return (expanded + centers.square().sum(dim=-1, keepdim=True)).clamp(min=0)
