"""Symmetric circuits: layers that know no direction, no place and no name of a cluster.

Every query, key and value commutes with what leaves k-means as it is: with rotations of the
position, and with permutations of everything that has a dimension for each cluster. That leaves
the identity on each of them, times a number (docs/symmetric.md).
"""

from abc import abstractmethod
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.activations import Identity, LimitingSoftmax, LogSoftmax, Softmax
from lloydformer.circuits.heads import Head, Numbers, together
from lloydformer.circuits.modulation import Modulation, Modulator
from lloydformer.circuits.projections import Number, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import (
    AFFINITY,
    ASSIGNMENT,
    NEAREST,
    POSITION,
    SECOND,
    Space,
    Subspace,
    belonging,
    log_belonging,
)
from lloydformer.circuits.tokens import Tokens
from lloydformer.numerics.distances import squared_distances

NEAR = 0.01
"""Added to squared distances in their unit, before their logarithm is taken."""


def kinds(n_heads: int, n_apart: int) -> dict[str, int]:
    """The numbers of a layer with so many decoder heads, and heads that keep centers apart.

    closeness is 1 over the unit of squared distances; kept is what self-attention adds of a
    center to itself: the apart minus the strides, so -1 where the new center is all new.
    """
    by_head = ("sharpness", "distance", "log_belonging", "nearest", "second", "stride")
    return {
        **dict.fromkeys(by_head, n_heads), "belonging": n_heads**2,
        **dict.fromkeys(("apart_sharpness", "apart"), n_apart), "closeness": 1, "kept": 1,
    }  # fmt: skip


def symmetric(numbers: Modulation | None = None) -> Recipe:
    r"""The symmetric layer with these numbers; `Fixed()`, soft k-means, without any.

    Encoder cross-attention assigns each point as Lloyd does, and for each head h writes
    $p^h_{ij} = \sigma_j(-\gamma_h D_{ij})$ and its logarithm; `affinity` writes $-D_{ij}$.
    Decoder cross-attention scores points by a sum of all that, and of how far their nearest and
    second nearest centers are; the center goes a stride of the way to each head's mean.
    Decoder self-attention drives centers apart.
    """
    numbers = numbers or Fixed()
    heads, apart = range(numbers.kinds["sharpness"]), range(numbers.kinds["apart"])
    by_cluster = (ASSIGNMENT, AFFINITY, *map(belonging, heads), *map(log_belonging, heads))
    return Recipe(
        name="symmetric",
        tokens=Tokens((POSITION, NEAREST, SECOND, *by_cluster)),
        encoder_cross=together(
            _by_distance(LimitingSoftmax("first"), ASSIGNMENT),
            *(_by_distance(Softmax(), belonging(h), Number("sharpness", h)) for h in heads),
            *(_by_distance(LogSoftmax(), log_belonging(h), Number("sharpness", h)) for h in heads),
        ),
        encoder_self=Head(
            Euclidean(), LimitingSoftmax(), on(POSITION), on(POSITION), -on(*by_cluster)
        ),
        affinity=_by_distance(Identity(), AFFINITY, Number("closeness")),
        decoder_cross=together(*(_decoder_head(g, len(heads)) for g in heads)),
        decoder_self=together(
            Head(DotProduct(), LimitingSoftmax(), on(ASSIGNMENT), on(ASSIGNMENT),
                 Number("kept") * on(POSITION)),
            *(_apart_head(a) for a in apart),
        ),
        numbers=numbers,
        algorithm="symmetric, learned",
    )  # fmt: skip


def _by_distance(
    activation: LimitingSoftmax | Softmax | LogSoftmax | Identity,
    written: Subspace,
    sharpness: Number | None = None,
) -> Head:
    """Points ask all centers how near they are, and write down what the activation makes of it."""
    here = on(POSITION)
    return Head(Euclidean(), activation, here, here, on(written), sharpness=sharpness)


def _decoder_head(g: int, n_heads: int) -> Head:
    """A center asks all points, each of its questions with its own number."""
    asked = {belonging(h): Number("belonging", g * n_heads + h) for h in range(n_heads)} | {
        log_belonging(g): Number("log_belonging", g), AFFINITY: Number("distance", g),
        NEAREST: Number("nearest", g), SECOND: Number("second", g),
    }  # fmt: skip
    query = sum((number * on(s) for s, number in asked.items()), start=on())
    return Head(DotProduct(), Softmax(), query, on(*asked), Number("stride", g) * on(POSITION))


def _apart_head(a: int) -> Head:
    """A center looks at those around it, and away from them."""
    away = Number("apart", a) * -on(POSITION)
    sharpness = Number("apart_sharpness", a)
    return Head(Euclidean(), Softmax(), on(POSITION), on(POSITION), away, sharpness=sharpness)


class SymmetricModulator(Modulator):
    """Writes log r and log s, the distances to the two nearest centers, and what follows."""

    def decide(self, encoder: Tensor, decoder: Tensor, time: float) -> tuple[Tensor, Numbers]:
        points, centers = (self.space.read(t, POSITION) for t in (encoder, decoder))
        squares = squared_distances(points, centers)  # (n, k)
        numbers = dict(self.numbers(points, centers, time))
        kept = numbers["apart"].sum(dim=-1) - numbers["stride"].sum(dim=-1)
        two = squares.topk(min(2, squares.shape[-1]), largest=False).values  # (n, 2), (n, 1) if k=1
        served = (two * numbers["closeness"] + NEAR).log()
        encoder = self.space.write(encoder, NEAREST, served[..., :1])
        encoder = self.space.write(encoder, SECOND, served[..., -1:])
        return encoder, {**numbers, "kept": kept.unsqueeze(-1)}

    @abstractmethod
    def numbers(
        self, points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"], time: float
    ) -> Numbers:
        """All kinds but `kept`."""


@dataclass(frozen=True)
class Fixed:
    """The same numbers in every state, with squared distances as they are.

    Kinds that are left out are 0; belonging[g * h + i] is what head g makes of belonging i. The
    default is soft k-means; a great sharpness, and a great belonging in place of its logarithm,
    are Lloyd's algorithm.
    """

    sharpness: tuple[float, ...] = (1.0,)
    log_belonging: tuple[float, ...] = (1.0,)
    stride: tuple[float, ...] = (1.0,)
    belonging: tuple[float, ...] = ()
    distance: tuple[float, ...] = ()
    nearest: tuple[float, ...] = ()
    second: tuple[float, ...] = ()
    apart_sharpness: tuple[float, ...] = ()
    apart: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        for name, size in self.given.items():
            found = getattr(self, name)
            if len(found) not in (0, size):
                raise ValueError(f"{name}: found {len(found)} numbers; pass {size} or none")

    @property
    def given(self) -> dict[str, int]:
        """How many numbers there are of each of its fields."""
        sizes = kinds(len(self.sharpness), len(self.apart))
        return {field.name: sizes[field.name] for field in fields(self)}

    @property
    def kinds(self) -> dict[str, int]:
        return kinds(len(self.sharpness), len(self.apart))

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset({NEAREST, SECOND})

    def build(self, space: Space) -> "FixedNumbers":
        return FixedNumbers(self, space)


class FixedNumbers(SymmetricModulator):
    """The numbers as buffers, `fixed_stride` and so on."""

    def __init__(self, fixed: Fixed, space: Space) -> None:
        super().__init__(fixed.kinds, space)
        self.given = fixed.given
        for name, size in fixed.given.items():
            values = getattr(fixed, name) or (0.0,) * size
            self.register_buffer(f"fixed_{name}", torch.tensor(values, dtype=torch.float64))

    def numbers(self, points: Tensor, centers: Tensor, time: float) -> Numbers:
        found = {name: getattr(self, f"fixed_{name}").to(points) for name in self.given}
        found["closeness"] = points.new_ones(1)
        return {name: value.expand(*points.shape[:-2], 1, -1) for name, value in found.items()}
