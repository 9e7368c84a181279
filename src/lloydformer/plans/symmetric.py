"""The symmetric layer as two folds: distances to the two nearest centers, and attention."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.circuits.symmetric import NEAR
from lloydformer.data.rows import Rows
from lloydformer.fork_safety import cached_property
from lloydformer.numerics.clusters import add_by_label
from lloydformer.plans.assign import NearestDistances, cluster_masses
from lloydformer.plans.contract import FinalAssignment, NewCenters, Plan, Step
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, weighted_sum

# Added to a mean squared distance, in units of the spread; that mean is 0 if every point is a
# center. Trained weights depend on it.
FLOOR = 1e-6
# Least mean squared distance, of the largest one. Without weights it is at least 1 / n. A squared
# distance in a score is at most 4 / (FLOOR * _LEAST_MEAN): times a sharpness of a thousand it is
# below 1e30, which `AttentionSums` relies on, and below the largest float32.
_LEAST_MEAN = 1e-20
# Scores that are computed together: 2 MB in float32, 4 MB in float64, which stay in cache.
_CELLS = 1 << 19
# Scores that are computed together on a GPU, where each operation on them is a launch.
_GPU_CELLS = 1 << 26
# Logarithms of shares are not below this. e^-60 is 1e-26, below the rounding of every sum that it
# enters; e^-88 would be denormal in float32, and slow.
_FAINT = -60.0


@dataclass(frozen=True)
class Centroid(SumFold):
    """The weight of all points, and the sum of w x."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        everything = torch.zeros(block.size, dtype=torch.long, device=block.labels.device)
        sums = block.rows.sums(everything, 1, block.weights)[0]
        return cluster_masses(everything, block.weights, 1)[0], sums


@dataclass(frozen=True)
class TailMoments:
    """A power of two that no |x - m|^2 exceeds, and in units of it the sums of w r and w r^2.

    r is |x - m|^2. The unit keeps r^2, a fourth power, within the range of float64.
    """

    middle: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        everything = torch.zeros(block.size, dtype=torch.long, device=block.labels.device)
        squares = block.rows.squared_distances(self.middle[None], everything).double()
        largest = squares.amax()
        tiny = torch.finfo(largest.dtype).tiny  # if all are 0: the unit of another block is larger
        unit = torch.where(largest > 0, largest / torch.frexp(largest).mantissa, tiny)
        squares = squares / unit
        return (
            unit,
            weighted_sum(squares, block.weights),
            weighted_sum(squares.square(), block.weights),
        )

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        # Units are powers of two, so that changing them is exact.
        unit = torch.maximum(first[0], second[0])
        one, two = first[0] / unit, second[0] / unit
        squares = one * first[1] + two * second[1]
        return unit, squares, one.square() * first[2] + two.square() * second[2]


@dataclass(frozen=True)
class NearestCosts(SumFold):
    """Sums of w r and w s; by nearest center, sums of w and of w r (k,).

    r and s are the squared distances to the nearest and second nearest center.
    """

    centers: Tensor

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k = len(self.centers)
        near, labels = two_nearest(block.rows.scores(self.centers), block.rows.squared_norms())
        weighted = near if block.weights is None else near * block.weights
        costs = add_by_label(weighted[0].contiguous(), labels, k)
        first, second = weighted.sum(dim=1)
        return first, second, cluster_masses(labels, block.weights, k), costs


def two_nearest(scores: Tensor, norms: Tensor) -> tuple[Tensor, Tensor]:
    """Return squared distances to the nearest and second nearest center, (2, m), and labels (m,).

    With one center it is also the second nearest.
    """
    first, labels = scores.min(dim=1)
    second = first
    if scores.shape[1] > 1:
        second = scores.scatter(1, labels[:, None], torch.inf).amin(dim=1)
    near = torch.stack([first, second]).double() + norms.double()
    return near.clamp_(min=0), labels


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

    @property
    def slope(self) -> Tensor:
        """The coefficient of D in a score, by log p and alone: -(l gamma + delta)."""
        return -(self.log_belonging * self.sharpness + self.distance)

    def like(self, values: Tensor) -> "Heads":
        """Return the numbers in the precision and on the device of these values."""
        return Heads(*(getattr(self, f.name).to(values) for f in fields(self)))


@dataclass(frozen=True)
class AttentionSums:
    """For each center and head: the largest score, the sums of e^score and of e^score x over it.

    With D the squared distances over `unit`, $p^h_{ij} = \\sigma_j(-\\gamma_h D_{ij})$, a score is
    $\\sum_h y_{gh} p^h_{ij} + l_g \\log p^g_{ij} - \\delta_g D_{ij} + a_g \\log r_i + b_g \\log s_i
    + \\log w_i$.
    """

    centers: Tensor
    unit: float
    heads: Heads

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        m = block.size
        cells = _CELLS if self.centers.device.type == "cpu" else _GPU_CELLS
        size = max(1, cells // self.heads.distance.numel())
        parts = []
        for start in range(0, m, size):
            rows = block.rows.part(start, min(start + size, m))
            weights = None if block.weights is None else block.weights[start : start + size]
            scores = self._scores(rows, weights)  # (k, h, size)
            # If no row has weight, all scores are -inf, and -inf less itself would be NaN.
            level = scores.amax(dim=2, keepdim=True).clamp(min=-1e30)
            shares = scores.sub_(level).clamp_(min=_FAINT).exp_()
            sums = rows.weighted_sums(shares.flatten(0, 1).mT)
            masses = shares.sum(dim=2).double()
            parts.append((level[..., 0].double(), masses, sums.view(*masses.shape, -1)))
        return reduce(self.merge, parts)

    @cached_property
    def _heads(self) -> Heads:
        """The numbers in the precision of the points; cached, as blocks are many."""
        return self.heads.like(self.centers)

    def _scores(self, rows: Rows, weights: Tensor | None) -> Tensor:
        """Return the scores (k, h, m) of some rows."""
        # Terms that all centers share (log-sum-exp, log r, log s) enter by one matrix product, the
        # rest by operations in place, because the arrays (k, h, m) are the largest ones.
        found, norms = rows.scores(self.centers), rows.squared_norms()
        near, _ = two_nearest(found, norms)
        served = (near / self.unit + NEAR).log().to(found)  # (2, m)
        away = (found + norms[:, None]).clamp_(min=0).mT.contiguous().div_(self.unit)  # (k, m)
        heads, least = self._heads, away.amin(dim=0)
        parts = (least - away).unsqueeze(1) * heads.sharpness[:, None]  # (k, h, m)
        parts = parts.clamp_(min=_FAINT).exp_()
        totals = parts.sum(dim=0)  # (h, m)
        common = torch.cat([totals.log() - heads.sharpness[:, None] * least, served])
        own = -heads.log_belonging.diag_embed()  # (k, h, h)
        ways = torch.cat([own, torch.stack([heads.nearest, heads.second], dim=2)], dim=2)
        scores = (ways.flatten(0, 1) @ common).view_as(parts)
        parts *= totals.reciprocal()
        for h in range(len(totals)):
            scores.addcmul_(heads.belonging[:, :, h, None], parts[:, h, None])
        scores.addcmul_(heads.slope.unsqueeze(2), away.unsqueeze(1))
        return scores if weights is None else scores.add_(weights.log().to(scores))

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        level = torch.maximum(first[0], second[0])
        one, two = (first[0] - level).exp(), (second[0] - level).exp()
        return (
            level,
            one * first[1] + two * second[1],
            one[..., None] * first[2] + two[..., None] * second[2],
        )


@dataclass(frozen=True)
class Invariants:
    """The inputs of the numbers of a step: means of r and s, shares of points and of cost.

    Squared distances are in units of `Spread.square`; shares sum to 1; time goes from 0 to 1.
    """

    nearest: float
    second: float
    members: Tensor
    costs: Tensor
    tail: float
    time: float


@dataclass(frozen=True)
class Spread:
    """The weight of all points, their mean squared distance to their mean, and the tail.

    tail: logarithm of the mean fourth power of the distance, over the square of the mean square.
    """

    mass: float
    square: float
    tail: float

    def invariants(
        self, first: float, second: float, members: Tensor, costs: Tensor, time: float
    ) -> Invariants:
        """Return the summary of `NearestCosts` in these units."""
        scale, members = self.mass * self.square, members / self.mass
        return Invariants(first / scale, second / scale, members, costs / scale, self.tail, time)


def measure_spread(session: Session) -> Spread:
    """Measure the spread of the points, in two folds.

    Raises
    ------
    ValueError
        If nearly all weight is on points that are nearly equal, so that squared distances of the
        others, in units of their mean, cannot be compared.
    """
    mass, sums = session.fold(Centroid())
    unit, square, fourth = session.fold(TailMoments(sums / mass))
    mass, unit, square, fourth = torch.stack([mass, unit, square / mass, fourth / mass]).tolist()
    if square == 0:
        return Spread(mass, 1.0, -math.inf)
    if square < _LEAST_MEAN or FLOOR * (unit * square) == 0:
        raise ValueError(
            "sample_weight: found weights with which the mean squared distance is "
            f"{square:.2g} of the largest one; leave out rows with such small weights, or set "
            "them to 0"
        )
    return Spread(mass, unit * square, math.log(fourth / square**2))


@dataclass(frozen=True)
class SymmetricPlan(Plan):
    """Each center moves toward the means that its heads attend to, and away from near centers.

    Attributes
    ----------
    numbers : callable
        Returns the numbers of a step (`Heads`) for its `Invariants`.
    n_steps : int
        Number of steps, which the invariant `time` depends on.
    spread : Spread or None
        The spread of the points; if it is None, each step measures it.
    """

    numbers: Callable[[Invariants], Heads]
    n_steps: int
    spread: Spread | None = None
    stops_on = "never"
    empties = "keep"

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        spread = self.spread or measure_spread(session)
        # The numbers depend on the points only through invariants under shift, rotation and scale,
        # so that one trained layer serves for every n, d and k (docs/symmetric.md).
        objective, second, members, costs = session.fold(NearestCosts(centers))
        first, other = torch.stack([objective, second]).tolist()
        time = iteration % self.n_steps / max(1, self.n_steps - 1)
        heads = self.numbers(spread.invariants(first, other, members, costs, time))
        unit = first / spread.mass + FLOOR * spread.square
        _, masses, sums = session.fold(AttentionSums(centers, unit, heads))
        now = centers.double()
        return Step(
            NewCenters(now + toward(heads, masses, sums, now) + apart(heads, now, unit)),
            objective,
            changed=None,
        )

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        squares, masses = session.fold(NearestDistances(centers, returned))
        inertia, *weights = torch.cat([squares[None], masses.clamp(min=0)]).tolist()
        return FinalAssignment(inertia, inertia, tuple(weights))


def toward(heads: Heads, masses: Tensor, sums: Tensor, centers: Tensor) -> Tensor:
    """Return the shift of each center to the means of its heads, each times its stride."""
    away = sums / masses[..., None] - centers[:, None]
    return (heads.stride[..., None] * away).sum(dim=1)


def apart(heads: Heads, centers: Tensor, unit: float) -> Tensor:
    """Return the shift of each center away from the means of near centers."""
    # Seen from their mean, so that |a|^2 - 2 a b + |b|^2 cancels less.
    seen = centers - centers.mean(dim=0)
    norms = seen.square().sum(dim=1)
    between = (norms[:, None] + norms - 2 * seen @ seen.mT).clamp(min=0) / unit  # (k, k)
    between.fill_diagonal_(0.0)
    exponents = -heads.apart_sharpness.unsqueeze(-1) * between.unsqueeze(1)  # (k, a, k)
    weights = (heads.apart.unsqueeze(-1) * exponents.softmax(dim=-1)).sum(dim=1)
    return weights.sum(dim=1, keepdim=True) * centers - weights @ centers
