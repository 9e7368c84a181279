"""The symmetric layer as a function of flat weights: many runs at once, on the same tasks."""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.symmetric import NEAR
from lloydformer.learning.symmetric.invariants import (
    INVARIANTS,
    NumberLayout,
    invariants_of_points,
    two_nearest,
)
from lloydformer.numerics.clusters import squared_distances
from lloydformer.plans.symmetric import FLOOR


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
        served = (torch.stack([near.first, near.second], dim=2) / unit + NEAR).log()
        scores = self._scores(at, squares / unit, served)
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
            return distances(points, centers)
        return squared_distances(centers.flatten(1, 2), points).view(*centers.shape[:3], -1)

    def _scores(
        self, at: dict[str, Tensor], squares: Tensor, served: Tensor
    ) -> Float[Tensor, "b r k h n"]:
        """Return the scores of decoder cross-attention.

        `served`: log distances to the nearest and second nearest center, (b, r, 2, n).
        """
        h = self.numbers.n_heads
        wide = squares.unsqueeze(3)  # (b, r, k, 1, n)
        logs = (-at["sharpness"][:, :, None, :, None] * wide).log_softmax(dim=2)
        # The terms of all heads are one product of matrices: (h, 2h + 1) times (2h + 1, n).
        belonging = at["belonging"].view(*squares.shape[:3], h, h)
        own, distance = at["log_belonging"].diag_embed(), -at["distance"].unsqueeze(-1)
        factors = torch.cat([belonging, own, distance], dim=-1)  # (b, r, k, h, 2h + 1)
        scores = factors @ torch.cat([logs.exp(), logs, wide], dim=3)
        by_service = torch.stack([at["nearest"], at["second"]], dim=-1)  # (b, r, k, h, 2)
        return scores + (by_service.flatten(2, 3) @ served).view_as(scores)


def distances(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r k n"]:
    """Return squared distances, by one product of matrices for the centers of all runs."""
    products = centers.flatten(1, 2) @ points.mT
    norms = points.square().sum(dim=-1)[:, None, None]
    expanded = norms - 2 * products.view(*centers.shape[:3], -1)
    return (expanded + centers.square().sum(dim=-1, keepdim=True)).clamp(min=0)
