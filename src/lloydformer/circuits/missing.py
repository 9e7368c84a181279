r"""K-means of points with missing values as a circuit: a mask subspace, sums and counts.

A point's token holds its observed values, 0 in place of missing ones, and a mask m. The dot product
with a center's $(2c, -c \circ c)$ is $2 x^\top c - m^\top (c \circ c)$: minus the squared distance
over the observed values, but for a number of the point alone. The decoder averages values and mask,
and its network divides one by the other, coordinate by coordinate. docs/missing-values.md goes
through it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from lloydformer.circuits.activations import LimitingSoftmax
from lloydformer.circuits.feedforward import TokenNetwork
from lloydformer.circuits.heads import Head
from lloydformer.circuits.projections import copy, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Euclidean
from lloydformer.circuits.subspaces import (
    ASSIGNMENT,
    COUNT,
    OBSERVED,
    POSITION,
    QUADRATIC,
    TOTAL,
    Space,
    Subspace,
)
from lloydformer.circuits.tokens import DecoderTokens, EncoderTokens, OneHot, Tokens
from lloydformer.numerics.checks import require

Policy = Literal["ignore", "impute"]
_SUBSPACES = (POSITION, OBSERVED, ASSIGNMENT, TOTAL, COUNT, QUADRATIC)


@dataclass(frozen=True)
class MaskedTokens(Tokens):
    r"""Tokens of points with missing values (NaN) and a mask, and of centers with their squares.

    Attributes
    ----------
    policy : {"ignore", "impute"}
        With "ignore", values and mask of a point are multiplied by $d / |O_i|$, the number of
        features over that of observed ones. This multiplies its distances, and its share in means.
    """

    policy: Policy = "ignore"
    has_missing: ClassVar[bool] = True

    def space(self, n_features: int, n_clusters: int) -> Space:
        """Return the token space for d features and k clusters."""
        sizes = {ASSIGNMENT: n_clusters}
        return Space(tuple((s, sizes.get(s, n_features)) for s in self.subspaces))

    def encoder(self, points: Tensor, assignments: Tensor) -> EncoderTokens:
        """Return tokens of points; NaN is a missing value."""
        mask = (~points.isnan()).to(points)
        if self.policy == "ignore":
            mask = mask * (points.shape[-1] / mask.sum(dim=-1, keepdim=True))
        parts = {POSITION: points.nan_to_num(nan=0.0) * mask, OBSERVED: mask}
        return self._fill(parts | {ASSIGNMENT: assignments}, points)

    def decoder(self, centers: Tensor, start: Mapping[str, Tensor] | None = None) -> DecoderTokens:
        """Return tokens of centers, which have no missing values."""
        if start:
            return super().decoder(centers, start)  # raises the error
        k = centers.shape[-2]
        codes = torch.eye(k).to(centers).expand(*centers.shape[:-1], k)
        parts = {POSITION: centers, ASSIGNMENT: codes, QUADRATIC: -centers.square()}
        return self._fill(parts, centers)

    def _fill(self, parts: dict[Subspace, Tensor], rows: Tensor) -> Tensor:
        """Return tokens of these parts; the others are 0 until a layer writes them."""
        return torch.cat([parts.get(s, torch.zeros_like(rows)) for s in self.subspaces], dim=-1)


@dataclass(frozen=True)
class CoordinateMeans:
    r"""The network that moves each coordinate of a center to a mean of observed values.

    With the mean value s and the mean mask n of a cluster's points, $s - n \circ c$ is 0 at the
    mean of the observed values. "ignore" adds it divided by n, and "impute" adds it as it is: then
    missing values count as the old center. It writes $-c \circ c$ for the new center.

    Attributes
    ----------
    policy : {"ignore", "impute"}
        See above.
    """

    policy: Policy = "ignore"
    symbol = "N"

    @property
    def subspaces(self) -> frozenset[Subspace]:
        return frozenset({POSITION, TOTAL, COUNT, QUADRATIC})

    def build(self, space: Space) -> "CoordinateMeansNetwork":
        """Return the module for tokens of this space."""
        identity = torch.eye(space.dim, dtype=torch.float64)
        names = {"position": POSITION, "total": TOTAL, "count": COUNT, "square": QUADRATIC}
        weights = {name: identity[space.span(subspace)] for name, subspace in names.items()}
        return CoordinateMeansNetwork(self.policy == "ignore", **weights)

    def updates(self, center: str, latex: bool = False) -> list[tuple[str, str]]:
        """Return the lines of the recipe's equation: what is updated, and by what."""
        divided = "/n" if self.policy == "ignore" else ""
        formula = "N" if latex else f"N[x ← x + (s − n∘x){divided}, Λ ← −x∘x]"
        return [(center, f"{center} + {formula}({center})")]


class CoordinateMeansNetwork(TokenNetwork):
    """The module of `CoordinateMeans`; its matrices read and write the subspaces of its names."""

    position: Tensor
    total: Tensor
    count: Tensor
    square: Tensor

    def __init__(self, divides: bool, **weights: Tensor) -> None:
        super().__init__(**weights)
        self.divides = divides

    def forward(self, tokens: Tensor) -> Tensor:
        """Return what is added to decoder tokens (..., k, dim)."""
        matrices = (self.position, self.total, self.count)
        c, s, n = (F.linear(tokens, matrix.to(tokens)) for matrix in matrices)
        step = s - n * c
        if self.divides:
            # Where nothing is observed the step is 0, and stays 0.
            step = step / n.clamp(min=torch.finfo(n.dtype).tiny)
        step = self.hidden(step)
        written = step @ self.position.to(tokens) - (c + step).square() @ self.square.to(tokens)
        return self.output(written)


def missing(policy: Policy = "ignore") -> Recipe:
    r"""Return the recipe of k-means for points with missing values.

    Points of a circuit may then have NaN, with at least one value each. A point goes to the center
    that is nearest by its observed values.

    Parameters
    ----------
    policy : {"ignore", "impute"}, default="ignore"
        With "ignore", squared distances are scaled to those of a whole point, and a coordinate of a
        center is the mean of the observed values of its points, weighted likewise. With "impute",
        missing values are those of the point's center (k-POD), and squared distances are sums over
        the observed values.

    Returns
    -------
    Recipe
        The recipe; its tokens have 5 d + k dimensions.

    Raises
    ------
    ValueError
        If `policy` is neither "ignore" nor "impute".

    See Also
    --------
    lloyd : The same algorithm for complete points.
    lloydformer.KMeans : The estimator; its parameter is `missing`.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> nan = float("nan")
    >>> points = torch.tensor([[0.0, 1.0], [2.0, nan], [nan, 9.0], [8.0, 7.0]])
    >>> circuit = lf.Circuit(lf.recipes.missing(), n_features=2, n_clusters=2)
    >>> trace = circuit(points, points[[0, 3]], n_layers=3)
    >>> trace.labels[-1].tolist()
    [0, 0, 1, 1]
    >>> trace.centers[-1][:, 1].tolist()
    [1.0, 8.333333015441895]
    """
    require(policy in ("ignore", "impute"), "policy", policy, 'pass "ignore" or "impute"')
    own, values = on(ASSIGNMENT), on(POSITION, OBSERVED)
    return Recipe(
        name="missing",
        tokens=MaskedTokens(_SUBSPACES, OneHot(), policy=policy),
        encoder_cross=Head(
            DotProduct(),
            LimitingSoftmax("first"),
            on(POSITION) + copy(OBSERVED, QUADRATIC),
            2.0 * on(POSITION) + on(QUADRATIC),
            own,
        ),
        # Points that agree in values and mask have the same cluster.
        encoder_self=Head(Euclidean(), LimitingSoftmax(), values, values, -own),
        decoder_cross=Head(
            DotProduct(),
            LimitingSoftmax(),
            own,
            own,
            copy(POSITION, TOTAL) + copy(OBSERVED, COUNT),
        ),
        # The position stays in the residual: the network adds to it.
        decoder_self=Head(DotProduct(), LimitingSoftmax(), own, own, -on(TOTAL, COUNT, QUADRATIC)),
        feedforward=CoordinateMeans(policy),
        algorithm="k-means with missing values",
        appendix="docs/missing-values.md",
    )
