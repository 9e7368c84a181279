"""Symmetric circuits: layers that respect the symmetries of k-means.

Every query, key and value commutes with rotations of the position, and with permutations of the
clusters in every subspace that has a dimension for each cluster. Therefore each of them is the
identity on its subspaces, times numbers (docs/symmetric.md).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lloydformer.circuits.activations import Identity, LimitingSoftmax, LogSoftmax, Softmax
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.heads import Head, Numbers, sum_of_heads
from lloydformer.circuits.projections import Number, Projection, on
from lloydformer.circuits.recipe import Modulation, Recipe
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
from lloydformer.circuits.tokens import DecoderTokens, EncoderTokens, Tokens
from lloydformer.numerics.clusters import squared_distances

# Added to scaled squared distances before their logarithm is taken, which is then finite for points
# at their centers. Chosen by hand.
NEAR = 0.01


# The subspaces of the points that a modulator writes.
WRITTEN: frozenset[Subspace] = frozenset({NEAREST, SECOND})


def count_numbers(n_heads: int, n_apart: int) -> dict[str, int]:
    """Return how many numbers of each kind a layer has.

    n_heads: number of decoder heads. n_apart: number of heads that drive centers apart.
    closeness: 1 over the unit of squared distances. kept: the factor of self-attention, the sum
    of `apart` minus the sum of `stride`; -1 replaces the center by the new one.
    """
    by_head = ("sharpness", "distance", "log_belonging", "nearest", "second", "stride")
    return {
        **dict.fromkeys(by_head, n_heads),
        "belonging": n_heads**2,
        **dict.fromkeys(("apart_sharpness", "apart"), n_apart),
        **dict.fromkeys(("closeness", "kept"), 1),
    }


def symmetric(numbers: Modulation | None = None) -> Recipe:
    r"""Return the recipe of the symmetric layer with these numbers.

    Encoder cross-attention assigns each point as Lloyd's algorithm does, and for each head h
    writes $p^h_{ij} = \sigma_j(-\gamma_h D_{ij})$ and its logarithm; `affinity` writes
    $-D_{ij}$. Decoder cross-attention scores points by a weighted sum of these and of the log
    distances of their two nearest centers; the center moves by a stride towards the mean of each
    head. Decoder self-attention drives centers apart.

    Parameters
    ----------
    numbers : Modulation or None, default=None
        Sets the numbers of the layer. None is `Fixed()`, which is soft k-means.

    Returns
    -------
    Recipe
        The recipe.

    See Also
    --------
    learned : A learned layer without these symmetries.
    lloydformer.LearnedKMeans : The estimator.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> points = torch.tensor([[0.0], [1.0], [4.0]], dtype=torch.float64)
    >>> symmetric, soft = (
    ...     lf.Circuit(recipe, n_features=1, n_clusters=2)(points, points[:2], n_layers=3)
    ...     for recipe in (lf.recipes.symmetric(), lf.recipes.soft())
    ... )
    >>> torch.allclose(symmetric.centers, soft.centers)
    True
    """
    numbers = numbers or Fixed()
    heads, apart = range(numbers.kinds["sharpness"]), range(numbers.kinds["apart"])
    by_cluster = (ASSIGNMENT, AFFINITY, *map(belonging, heads), *map(log_belonging, heads))
    here, code, sharpness = on(POSITION), on(ASSIGNMENT), [Number("sharpness", h) for h in heads]
    stay = Head(DotProduct(), LimitingSoftmax(), code, code, Number("kept") * here)
    # soft-max of the distances to other centers: a center moves away from those near it
    move_apart = (
        _by_distance(Softmax(), Number("apart", a) * -here, Number("apart_sharpness", a))
        for a in apart
    )
    return Recipe(
        name="symmetric",
        tokens=Tokens((POSITION, NEAREST, SECOND, *by_cluster)),
        encoder_cross=sum_of_heads(
            _by_distance(LimitingSoftmax("first"), code),
            *(_by_distance(Softmax(), on(belonging(h)), sharpness[h]) for h in heads),
            *(_by_distance(LogSoftmax(), on(log_belonging(h)), sharpness[h]) for h in heads),
        ),
        encoder_self=_by_distance(LimitingSoftmax(), -on(*by_cluster)),
        affinity=_by_distance(Identity(), on(AFFINITY), Number("closeness")),
        decoder_cross=sum_of_heads(*(_decoder_head(g, len(heads)) for g in heads)),
        decoder_self=sum_of_heads(stay, *move_apart),
        numbers=numbers,
        algorithm="symmetric, learned",
        appendix="docs/symmetric.md",
    )


def _by_distance(
    activation: HeadActivation, value: Projection, sharpness: Number | None = None
) -> Head:
    """Return a head with the activation of the distances between positions."""
    here = on(POSITION)
    return Head(Euclidean(), activation, here, here, value, sharpness=sharpness)


def _decoder_head(g: int, n_heads: int) -> Head:
    """Return a head by which centers read points; each subspace of the query has its number."""
    terms = {belonging(h): Number("belonging", g * n_heads + h) for h in range(n_heads)}
    terms |= {
        log_belonging(g): Number("log_belonging", g),
        AFFINITY: Number("distance", g),
        NEAREST: Number("nearest", g),
        SECOND: Number("second", g),
    }
    query = sum((number * on(s) for s, number in terms.items()), start=on())
    return Head(DotProduct(), Softmax(), query, on(*terms), Number("stride", g) * on(POSITION))


class SymmetricModulator(nn.Module, ABC):
    """The module of a modulation, which runs before the heads of a layer.

    It writes the log squared distances to the two nearest centers into the points, and sets `kept`;
    subclasses compute the other numbers. Each kind of numbers passes through a hook point of its
    name, so an ordinary forward hook can read or replace it.
    """

    def __init__(self, kinds: dict[str, int], space: Space) -> None:
        super().__init__()
        self.space = space
        for kind in kinds:
            self.add_module(kind, nn.Identity())

    def forward(
        self, encoder: EncoderTokens, decoder: DecoderTokens, time: float
    ) -> tuple[EncoderTokens, Numbers]:
        """Return the encoder tokens with the subspaces it writes, and the numbers.

        time: from 0 in the first layer to 1 in the last.
        """
        points, centers = (self.space.read(t, POSITION) for t in (encoder, decoder))
        squares = squared_distances(points, centers)  # (n, k)
        numbers = dict(self.numbers(points, centers, time))
        # so that the weights of all positions sum to 1, and centers move along with the data
        kept = numbers["apart"].sum(dim=-1) - numbers["stride"].sum(dim=-1)
        two = squares.topk(min(2, squares.shape[-1]), largest=False).values  # (n, 2), (n, 1) if k=1
        logs = (two * numbers["closeness"] + NEAR).log()
        encoder = self.space.write(encoder, NEAREST, logs[..., :1])
        encoder = self.space.write(encoder, SECOND, logs[..., -1:])
        numbers["kept"] = kept.unsqueeze(-1)
        return encoder, {kind: getattr(self, kind)(value) for kind, value in numbers.items()}

    @abstractmethod
    def numbers(
        self, points: Float[Tensor, "*b n d"], centers: Float[Tensor, "*b k d"], time: float
    ) -> Numbers:
        """Return the numbers of all kinds but `kept`."""


@dataclass(frozen=True)
class Fixed:
    """Fixed numbers, equal in every layer, and squared distances without scaling.

    Kinds that are not given are 0; belonging[g * h + i] is the factor of belonging i in the score
    of head g, of h heads. The default is soft k-means. A large sharpness, and a large belonging
    instead of log_belonging, give Lloyd's algorithm.
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
    subspaces = WRITTEN

    def __post_init__(self) -> None:
        for name, size in self.given.items():
            count = len(getattr(self, name))
            if count not in (0, size):
                raise ValueError(f"{name}: found {count} numbers; pass {size} or none")

    @property
    def given(self) -> dict[str, int]:
        """The number of values that each field needs."""
        return {field.name: self.kinds[field.name] for field in fields(self)}

    @property
    def kinds(self) -> dict[str, int]:
        """The number of values of each kind."""
        return count_numbers(len(self.sharpness), len(self.apart))

    def build(self, space: Space) -> "FixedNumbers":
        """Return the module for tokens of this space."""
        return FixedNumbers(self, space)


class FixedNumbers(SymmetricModulator):
    """The module of `Fixed`; its buffers are named `fixed_stride` and so on."""

    def __init__(self, fixed: Fixed, space: Space) -> None:
        super().__init__(fixed.kinds, space)
        self.given = fixed.given
        for name, size in fixed.given.items():
            values = getattr(fixed, name) or (0.0,) * size
            self.register_buffer(f"fixed_{name}", torch.tensor(values, dtype=torch.float64))

    def numbers(self, points: Tensor, centers: Tensor, time: float) -> Numbers:
        """Return the numbers of all kinds but `kept`."""
        values = {name: getattr(self, f"fixed_{name}").to(points) for name in self.given}
        values["closeness"] = points.new_ones(1)
        return {name: value.expand(*points.shape[:-2], 1, -1) for name, value in values.items()}
