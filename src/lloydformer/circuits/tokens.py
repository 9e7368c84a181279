"""Tokens: how points and centers are embedded, and the codes of clusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.subspaces import (
    AFFINITY,
    ASSIGNMENT,
    HALF,
    NEAREST,
    POSITION,
    SECOND,
    SQUARED_NORM,
    Space,
    Subspace,
)

# Tokens of n points and of k centers; a batch axis may come first.
EncoderTokens = Float[Tensor, "*b n dim"]
DecoderTokens = Float[Tensor, "*b k dim"]


@runtime_checkable
class Codes(Protocol):
    """Protocol of the codes of clusters in tokens."""

    def size(self, n_clusters: int) -> int:
        """Return the number of dimensions of a code."""
        ...

    def table(self, n_clusters: int) -> Float[Tensor, "k m"]:
        """Return the codes of all clusters as rows; m is `size(n_clusters)`."""
        ...


@dataclass(frozen=True)
class OneHot:
    """The code of cluster j is e_j: k dimensions. Mixtures of codes are unambiguous."""

    def size(self, n_clusters: int) -> int:
        return n_clusters

    def table(self, n_clusters: int) -> Float[Tensor, "k k"]:
        return torch.eye(n_clusters, dtype=torch.float64)


@dataclass(frozen=True)
class Binary:
    """The code of cluster j is j in base 2 with digits -1 and +1: ceil(log2 k) dimensions.

    The dot product of two codes is largest only if they are equal, which is what limiting
    soft-max needs. A mixture of two codes can equal a third one.
    """

    def size(self, n_clusters: int) -> int:
        return max(1, (n_clusters - 1).bit_length())

    def table(self, n_clusters: int) -> Float[Tensor, "k m"]:
        # by division: ONNX has no shift of signed integers by a tensor
        powers = torch.tensor([2.0**digit for digit in range(self.size(n_clusters))]).double()
        number = torch.arange(n_clusters, dtype=torch.float64)[:, None]
        return 2 * (number / powers).floor().remainder(2) - 1


@dataclass(frozen=True)
class Tokens:
    """The embedding of points and centers as tokens.

    Attributes
    ----------
    subspaces : tuple of Subspace
        The subspaces of a token, in order.
    codes : Codes
        The codes of clusters in `ASSIGNMENT`.
    """

    subspaces: tuple[Subspace, ...]
    codes: Codes = field(default_factory=OneHot)
    # True if points may have missing values (NaN).
    has_missing: ClassVar[bool] = False

    def space(self, n_features: int, n_clusters: int) -> Space:
        """Return the token space for d features and k clusters."""
        sizes = {
            POSITION: n_features,
            SQUARED_NORM: 1,
            HALF: 1,
            NEAREST: 1,
            SECOND: 1,
            ASSIGNMENT: self.codes.size(n_clusters),
        }
        # all others have one dimension for each center: AFFINITY, and `belonging` and
        # `log_belonging` of the symmetric layer
        return Space(tuple((s, sizes.get(s, n_clusters)) for s in self.subspaces))

    def encoder(
        self, points: Float[Tensor, "*b n d"], assignments: Float[Tensor, "*b n k"]
    ) -> EncoderTokens:
        """Return X^(t): positions and current assignments (eq:ed-iterates, eq:ed-iterates-ip)."""
        codes = self.codes.table(assignments.shape[-1]).to(points)
        # affinities, NEAREST and SECOND of a point are 0 until the layer writes them
        return self._embed(points, assignments @ codes, torch.zeros_like(assignments), 0.0)

    def decoder(
        self, centers: Float[Tensor, "*b k d"], start: Mapping[str, Tensor] | None = None
    ) -> DecoderTokens:
        """Return C~^(t): positions, and each center's own code.

        start: further parameters of the centers, by name, for tokens that have any.
        """
        if start:
            raise ValueError(
                f"start: found {', '.join(map(repr, start))}; centers of this recipe have a "
                "position alone, leave it out"
            )
        k = centers.shape[-2]
        codes = self.codes.table(k).to(centers).expand(*centers.shape[:-1], -1)
        # as queries, e_j selects column j of the points' affinities, and 1 their NEAREST and SECOND
        own = torch.eye(k).to(centers).expand(*centers.shape[:-1], -1)
        return self._embed(centers, codes, own, 1.0)

    def _embed(
        self, positions: Tensor, codes: Tensor, affinities: Tensor, constant: float
    ) -> Float[Tensor, "*b m dim"]:
        """Return tokens of m points or centers.

        `affinities` fill every subspace with a dimension for each center, and `constant` fills
        NEAREST and SECOND.
        """
        parts = {
            POSITION: positions,
            SQUARED_NORM: positions.square().sum(dim=-1, keepdim=True),
            HALF: torch.full_like(positions[..., :1], -0.5),
            NEAREST: torch.full_like(positions[..., :1], constant),
            SECOND: torch.full_like(positions[..., :1], constant),
            ASSIGNMENT: codes,
        }
        return torch.cat([parts.get(s, affinities) for s in self.subspaces], dim=-1)


def plain(codes: Codes | None = None) -> Tokens:
    """Return tokens [x, y] (eq:ed-iterates): d + k dimensions with one-hot codes."""
    return Tokens((POSITION, ASSIGNMENT), codes or OneHot())


def positions_only() -> Tokens:
    """Return tokens [x]: positions without codes, d dimensions."""
    return Tokens((POSITION,))


def lifted(codes: Codes | None = None) -> Tokens:
    """Return tokens [x, |x|^2, -1/2, y] (eq:ed-iterates-ip): d + k + 2 dimensions if one-hot."""
    return Tokens((POSITION, SQUARED_NORM, HALF, ASSIGNMENT), codes or OneHot())


def lifted_with_affinity() -> Tokens:
    """Return tokens [x, |x|^2, -1/2, y, y^] (eq rob CXY): d + 2k + 2 dimensions."""
    return Tokens((POSITION, SQUARED_NORM, HALF, ASSIGNMENT, AFFINITY), OneHot())
