"""The symmetric layer as two folds: how points are served, and what each center attends to."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.data.accumulate import add_by_label
from lloydformer.plans.assign import Measure, masses_of
from lloydformer.plans.contract import Adding, Block, Final, Plain, Run, Step, total
from lloydformer.plans.means import mean

NEAR = 0.01
"""Added to squared distances, in units of their mean, before their logarithm is taken."""
FLOOR = 1e-6
"""Added to a mean squared distance: centers may hit all points."""
_CELLS = 1 << 21
"""Scores that are looked at together."""


@dataclass(frozen=True)
class Centroid(Adding):
    """The weight of all points, and the sum of w x."""

    def map(self, block: Block) -> tuple[Tensor, ...]:
        everything = torch.zeros(len(block.labels), dtype=torch.long, device=block.labels.device)
        sums = block.rows.sums(everything, 1, block.weights)[0]
        return masses_of(everything, block.weights, 1)[0], sums


@dataclass(frozen=True)
class Tail(Adding):
    """The sums of w |x - m|^2 and of w |x - m|^4."""

    middle: Tensor

    def map(self, block: Block) -> tuple[Tensor, ...]:
        everything = torch.zeros(len(block.labels), dtype=torch.long, device=block.labels.device)
        squares = block.rows.squared_distances(self.middle[None], everything).double()
        return total(squares, block.weights), total(squares.square(), block.weights)


@dataclass(frozen=True)
class Served(Adding):
    """Sums of w r and w s, and by nearest center of w and w r.

    r and s are the squared distances to the nearest and second nearest center.
    """

    centers: Tensor

    def map(self, block: Block) -> tuple[Tensor, ...]:
        k = len(self.centers)
        near, labels = two_nearest(block.rows.scores(self.centers), block.rows.squared_norms())
        weighted = near if block.weights is None else near * block.weights
        costs = add_by_label(weighted[0].contiguous(), labels, k)
        first, second = weighted.sum(dim=1)
        return first, second, masses_of(labels, block.weights, k), costs


def two_nearest(scores: Tensor, norms: Tensor) -> tuple[Tensor, Tensor]:
    """Squared distances to the nearest and second nearest center, (2, m); labels, (m,)."""
    k = scores.shape[1]
    found = scores.topk(min(2, k), dim=1, largest=False)
    near = (found.values.double() + norms.double()[:, None]).clamp(min=0).mT
    return near.expand(2, -1), scores.argmin(dim=1)


@dataclass(frozen=True)
class Heads:
    """The numbers of one step: (h,), of each center (k, h), (k, h, h) or (k, a), in float64."""

    sharpness: Tensor
    distance: Tensor
    log_belonging: Tensor
    nearest: Tensor
    second: Tensor
    stride: Tensor
    belonging: Tensor
    apart_sharpness: Tensor
    apart: Tensor


@dataclass(frozen=True)
class Attended:
    """Of each center and head, the sum of e^score, and of e^score x, less the largest score.

    With D the squared distances over `unit`, $p^h_{ij} = \\sigma_j(-\\gamma_h D_{ij})$, a score is
    $\\sum_h y_{gh} p^h_{ij} + l_g \\log p^g_{ij} - \\delta_g D_{ij} + a_g \\log r_i + b_g \\log s_i
    + \\log w_i$.
    """

    centers: Tensor
    unit: float
    heads: Heads

    def map(self, block: Block) -> tuple[Tensor, ...]:
        heads, scores = self.heads, block.rows.scores(self.centers)  # (m, k)
        norms = block.rows.squared_norms()
        near, _ = two_nearest(scores, norms)
        served = (near / self.unit + NEAR).log()  # (2, m)
        squares = (scores.double() + norms.double()[:, None]).clamp(min=0) / self.unit
        masses = torch.stack([(-g * squares).logsumexp(dim=1) for g in heads.sharpness], dim=1)
        log_weights = None if block.weights is None else block.weights.double().log()
        size = max(1, _CELLS // (len(squares) * len(heads.sharpness)))
        parts = [
            self._part(block, squares, masses, served, log_weights, slice(j, j + size))
            for j in range(0, len(self.centers), size)
        ]
        return tuple(torch.cat(part) for part in zip(*parts, strict=True))

    def _part(
        self,
        block: Block,
        squares: Tensor,
        masses: Tensor,
        served: Tensor,
        log_weights: Tensor | None,
        some: slice,
    ) -> tuple[Tensor, ...]:
        """Of some centers: level (c, h), masses (c, h), sums (c, h, d)."""
        heads, wide = self.heads, squares[:, some].unsqueeze(-1)  # (m, c, 1)
        logs = -heads.sharpness * wide - masses[:, None]  # (m, c, h)
        scores = torch.einsum("mch,cgh->mcg", logs.exp(), heads.belonging[some])
        scores += heads.log_belonging[some] * logs - heads.distance[some] * wide
        scores += heads.nearest[some] * served[0][:, None, None]
        scores += heads.second[some] * served[1][:, None, None]
        if log_weights is not None:
            scores += log_weights[:, None, None]
        level = scores.amax(dim=0).clamp(min=-1e300)
        shares = (scores - level).exp()
        sums = block.rows.mixtures(shares.flatten(1))
        return level, shares.sum(dim=0), sums.view(*level.shape, -1)

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        level = torch.maximum(first[0], second[0])
        one, two = (first[0] - level).exp(), (second[0] - level).exp()
        return (
            level,
            one * first[1] + two * second[1],
            one[..., None] * first[2] + two[..., None] * second[2],
        )


@dataclass(frozen=True)
class Found:
    """What a step depends on: means of r and s, and each center's part of points and of cost.

    Squares are in units of `Spread.square`, and parts sum to 1. time: from 0 to 1.
    """

    nearest: float
    second: float
    members: Tensor
    costs: Tensor
    tail: float
    time: float


@dataclass(frozen=True)
class Spread:
    """Of the points: their weight, mean square distance to their mean, and log mean fourth power.

    The latter is in units of the former.
    """

    mass: float
    square: float
    tail: float

    def found(
        self, first: Tensor, second: Tensor, members: Tensor, costs: Tensor, time: float
    ) -> Found:
        """What a fold of `Served` says, in these units."""
        scale = self.mass * self.square
        return Found(first.item() / scale, second.item() / scale, members / self.mass,
                     costs / scale, self.tail, time)  # fmt: skip


def spread_of(run: Run) -> Spread:
    mass, sums = run(Centroid())
    square, fourth = run(Tail(sums / mass))
    square, fourth = (square / mass).item(), (fourth / mass).item()
    if square == 0:
        return Spread(mass.item(), 1.0, -math.inf)
    return Spread(mass.item(), square, math.log(fourth / square**2))


@dataclass(frozen=True)
class Symmetric(Plain):
    """Each center moves toward the means of what its heads attend to, and away from its kin.

    numbers: those of a step, from what it finds. spread: of the points. n_steps: how many there
    will be, which the numbers may depend on. The objective is that of k-means.
    """

    numbers: Callable[[Found], Heads]
    n_steps: int
    spread: Spread | None = None
    stops_on = "shift"
    empties = "keep"
    directions = False

    def step(self, run: Run, centers: Tensor, iteration: int) -> Step:
        spread = self.spread or spread_of(run)
        first, second, members, costs = run(Served(centers))
        time = iteration % self.n_steps / max(1, self.n_steps - 1)
        heads = self.numbers(spread.found(first, second, members, costs, time))
        unit = first.item() / spread.mass + FLOOR * spread.square
        _, masses, sums = run(Attended(centers, unit, heads))
        now = centers.double()
        moved = now + toward(heads, masses, sums, now) + apart(heads, now, unit)
        changed = len(members)  # no label is compared: as good as all
        return Step(moved, torch.ones_like(members), first.item(), changed)

    def place(self, step: Step, centers: Tensor) -> Tensor:
        return mean(step, centers)

    def finish(self, run: Run, centers: Tensor) -> Final:
        inertia, masses = run(Measure(centers))
        return Final(inertia.item(), inertia.item(), tuple(masses.clamp(min=0).tolist()))


def toward(heads: Heads, masses: Tensor, sums: Tensor, centers: Tensor) -> Tensor:
    """The way to the heads' means, each with its stride."""
    away = sums / masses[..., None] - centers[:, None]
    return (heads.stride[..., None] * away).sum(dim=1)


def apart(heads: Heads, centers: Tensor, unit: float) -> Tensor:
    """The way from the means of near centers."""
    seen = centers - centers.mean(dim=0)
    norms = seen.square().sum(dim=1)
    between = (norms[:, None] + norms - 2 * seen @ seen.mT).clamp(min=0) / unit  # (k, k)
    between.fill_diagonal_(0.0)
    exponents = -heads.apart_sharpness.unsqueeze(-1) * between.unsqueeze(1)  # (k, a, k)
    weights = (heads.apart.unsqueeze(-1) * exponents.softmax(dim=-1)).sum(dim=1)
    return weights.sum(dim=1, keepdim=True) * centers - weights @ centers
