"""K-means with bounds on the sizes of clusters: a transport problem, or Sinkhorn's iteration.

In the limit of large inverse temperatures the assignment is not a fold, as each label depends on
all points. It is a task, `BoundedAssignment`; an engine without a kernel for it gets the costs of
all points by a fold and solves the problem in NumPy. At a finite temperature every round is a fold:
the factors of rows follow from those of columns, so that only k numbers are kept.
"""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.numerics.clusters import squared_distances
from lloydformer.numerics.transport import (
    Sizes,
    assign_within,
    dual_bound,
    resolve_sizes,
)
from lloydformer.plans.assign import NearestDistances, cluster_masses, count_label_changes
from lloydformer.plans.contract import Certificate, FinalAssignment, Plan, Step, Sums
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, Task, weighted_sum

# Most costs that are held for the solver in NumPy: 2 GB in float64.
_MOST_COSTS = 1 << 28


@dataclass(frozen=True)
class CertifiedLabels:
    """The result of `BoundedAssignment`; the labels are in the session.

    Attributes
    ----------
    prices : Tensor of shape (k,)
        The price of a place in each cluster, in float64: each point is in a cluster with the
        smallest w d^2 + price.
    cost, bound : float
        The sum of w d^2, and a lower bound of it over all assignments within the bounds; both 0
        unless `certify` was set.
    """

    prices: Tensor
    cost: float = 0.0
    bound: float = 0.0


@dataclass(frozen=True)
class BoundedAssignment(Task):
    """Label points within bounds on sizes, at the smallest cost; returns `CertifiedLabels`.

    The size of a cluster is its number of points with a weight above 0. Points without weight go to
    the nearest center.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        In the coordinates and the precision of the rows.
    returned : Tensor of shape (k, d) or None
        As in `NearestDistances`.
    lower, upper : Tensor of shape (k,)
        The bounds, int64; some assignment is within them.
    prices : Tensor of shape (k,)
        The prices to begin with, for instance those of the last iteration. They do not change the
        result, but for ties.
    certify : bool
        Also compute the cost and its lower bound.
    """

    centers: Tensor
    returned: Tensor | None
    lower: Tensor
    upper: Tensor
    prices: Tensor
    certify: bool = False

    writes: ClassVar[Columns] = ("labels",)


@dataclass(frozen=True)
class WeightedRows(SumFold):
    """Count the points with a weight above 0."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor]:
        if block.weights is None:
            return (torch.tensor(block.size),)
        return ((block.weights > 0).sum(),)


@dataclass(frozen=True)
class CostTable:
    """Squared distances (n, k) of all points to all centers, and weights (n,), in float64."""

    centers: Tensor
    returned: Tensor | None

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, Tensor]:
        everything = torch.arange(block.size, device=block.labels.device)
        if self.returned is None:
            points, centers = block.rows.take(everything).double(), self.centers.double()
        else:
            points, centers = block.rows.exact(everything), self.returned
        weights = torch.ones(block.size) if block.weights is None else block.weights
        return squared_distances(points, centers), weights.double().to(points.device)

    def merge(
        self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        return torch.cat([first[0], second[0]]), torch.cat([first[1], second[1]])


@dataclass(frozen=True)
class GivenLabels(SumFold):
    """Write labels that were computed for all points."""

    labels: Tensor  # (n,) int32

    writes: ClassVar[Columns] = ("labels",)

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        block.labels.copy_(self.labels[block.start : block.start + block.size])
        return ()


@dataclass(frozen=True)
class LabelledSums(SumFold):
    """Sums (k, d), masses (k,), sum of w d^2, changed labels and sizes (k,), by the labels.

    The size of a cluster is its number of points with a weight above 0.
    """

    centers: Tensor
    returned: Tensor | None = None

    writes: ClassVar[Columns] = ("previous",)
    writes_from: ClassVar[Columns] = ("labels",)

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        labels, k = block.labels.long(), len(self.centers)
        if self.returned is None:
            squares = block.rows.squared_distances(self.centers.double(), labels)
        else:
            squares = block.rows.exact_squares(self.returned, labels)
        sums = block.rows.sums(labels, k, block.weights)
        sizes = masses = cluster_masses(labels, block.weights, k)
        if block.weights is not None:
            sizes = cluster_masses(labels, (block.weights > 0).double(), k)
        cost = weighted_sum(squares, block.weights)
        return sums, masses, cost, count_label_changes(block), sizes


def assign_in_memory(session: Session, task: BoundedAssignment) -> CertifiedLabels:
    """Run the task without a kernel: with the costs of all points to all centers in memory."""
    n, k = session.layout.n_rows, len(task.centers)
    if n * k > _MOST_COSTS:
        raise ValueError(
            f"engine: {n:,} rows and {k:,} clusters need {n * k * 8 / 1e9:.0f} GB without compiled "
            'kernels; use engine="native" with rows in CPU memory'
        )
    squares, weights = (
        part.cpu().numpy() for part in session.fold(CostTable(task.centers, task.returned))
    )
    labels, there = squares.argmin(axis=1), weights > 0
    costs = squares[there] * weights[there, None]
    lower, upper = task.lower.cpu().numpy(), task.upper.cpu().numpy()
    labels[there], prices = assign_within(costs, lower, upper, task.prices.cpu().numpy())
    session.fold(GivenLabels(torch.from_numpy(labels.astype(np.int32)).to(task.centers.device)))
    found = CertifiedLabels(torch.from_numpy(prices))
    if not task.certify:
        return found
    cost = float(np.take_along_axis(costs, labels[there, None], axis=1).sum())
    return replace(found, cost=cost, bound=dual_bound(costs, lower, upper, prices))


@dataclass(frozen=True)
class ConstrainedPlan(Plan):
    """Each center moves to the mean of its points, whose number is within bounds.

    Attributes
    ----------
    size_min, size_max : tuple of int or float
        As in `circuits.activations.LimitingSinkhorn`.
    prices : tuple of float or None
        The prices of the last iteration, to begin with.
    """

    size_min: Sizes = ()
    size_max: Sizes = ()
    prices: tuple[float, ...] | None = field(default=None, repr=False)
    stops_on = "labels"
    empties = "move"

    def assign(
        self,
        session: Session,
        centers: Tensor,
        returned: Tensor | None = None,
        certify: bool = False,
    ) -> CertifiedLabels:
        """Label the points within the bounds."""
        layout, k = session.layout, len(centers)
        n = int(session.fold(WeightedRows())[0]) if layout.weighted else layout.n_rows
        bounds = resolve_sizes(self.size_min, self.size_max, n, k)
        lower, upper = (torch.from_numpy(sizes) for sizes in bounds)
        prices = torch.zeros(k, dtype=torch.float64)
        if self.prices is not None:
            prices = torch.tensor(self.prices, dtype=torch.float64)
        task = BoundedAssignment(centers, returned, lower, upper, prices, certify)
        found: CertifiedLabels | None = session.run(task)
        return assign_in_memory(session, task) if found is None else found

    def step_with_prices(self, session: Session, centers: Tensor) -> tuple[Step, "ConstrainedPlan"]:
        """Run one iteration; also return the plan with the prices for the next one."""
        found = self.assign(session, centers)
        sums, masses, cost, changed, _ = session.fold(LabelledSums(centers))
        step = Step(Sums(sums, masses), cost, changed)
        return step, replace(self, prices=tuple(found.prices.tolist()))

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        return self.step_with_prices(session, centers)[0]

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        found = self.assign(session, centers, returned, certify=True)
        _, masses, cost, _, sizes = session.fold(LabelledSums(centers, returned))
        # Rounding may take the bound just above the cost.
        gap = max(0.0, 1 - found.bound / found.cost) if found.cost > 0 else 0.0
        counts = tuple(int(size) for size in sizes.tolist())
        certificate = Certificate(gap, tuple(found.prices.tolist()), counts)
        inertia = cost.item()
        return FinalAssignment(inertia, inertia, tuple(masses.tolist()), certificate)


@dataclass(frozen=True)
class ColumnSums:
    """Logarithms of the sums over the points of exp(score + u): Sinkhorn's columns, unscaled.

    The score is -gamma d^2, and u = -log sum_j exp(score_j + v_j) normalises the row. A weight
    counts as this number of points.
    """

    centers: Tensor
    inverse_temperature: float
    scales: Tensor  # v, (k,)

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> Tensor:
        logits = _scores(block, self.centers) * self.inverse_temperature
        rows = (logits + self.scales).logsumexp(dim=1, keepdim=True)
        if block.weights is not None:
            rows = rows - block.weights.double().log()[:, None]
        return (logits - rows).logsumexp(dim=0)

    def merge(self, first: Tensor, second: Tensor) -> Tensor:
        return torch.logaddexp(first, second)


@dataclass(frozen=True)
class SharedSums(SumFold):
    """Sums of w p x (k, d) and w p (k,), minus the sum of w u / gamma, and the changed labels."""

    centers: Tensor
    inverse_temperature: float
    scales: Tensor

    writes: ClassVar[Columns] = ("labels", "previous")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        logits = _scores(block, self.centers) * self.inverse_temperature + self.scales
        block.labels.copy_(logits.argmax(dim=1))
        energy = -logits.logsumexp(dim=1) / self.inverse_temperature
        shares = logits.softmax(dim=1)
        if block.weights is not None:
            shares = shares * block.weights.double()[:, None]
        sums, masses = block.rows.double().weighted_sums(shares), shares.sum(dim=0)
        return sums, masses, weighted_sum(energy, block.weights), count_label_changes(block)


def _scores(block: PointBlock, centers: Tensor) -> Tensor:
    """Return -|x - c|^2 in float64, (m, k)."""
    return -block.rows.double().distances_to_all(centers.double())


@dataclass(frozen=True)
class SinkhornPlan(Plan):
    """Each center moves to the mean of all points, weighted by Sinkhorn's shares.

    Bounds are for sums of shares, where a weight counts as this number of points. The objective is
    the free energy within the bounds, as its dual: the limit of the cost for large inverse
    temperatures.
    """

    inverse_temperature: float = 1.0
    size_min: Sizes = ()
    size_max: Sizes = ()
    n_rounds: int = 100
    stops_on = "shift"
    empties = "keep"
    has_plain_inertia = False

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        gamma, k = self.inverse_temperature, len(centers)
        mass = session.fold(TotalWeight())[0].item()
        bounds = resolve_sizes(self.size_min, self.size_max, round(mass), k)
        lower, upper = (torch.from_numpy(s).to(centers.device).double().log() for s in bounds)
        scales = torch.zeros(k, dtype=torch.float64, device=centers.device)
        for _ in range(self.n_rounds):
            sums = session.fold(ColumnSums(centers, gamma, scales))
            scales = torch.minimum(torch.maximum(sums, lower), upper) - sums
        sums, masses, energy, changed = session.fold(SharedSums(centers, gamma, scales))
        places = torch.where(scales < 0, upper, lower).exp()
        energy = energy + (torch.where(scales == 0, 0.0, scales * places)).sum() / gamma
        return Step(Sums(sums, masses), energy, changed)

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        energy = self.step(session, centers, 0).objective.item()
        inertia = session.fold(NearestDistances(centers, returned))[0].item()
        return FinalAssignment(inertia, energy)


@dataclass(frozen=True)
class TotalWeight(SumFold):
    """The sum of all weights."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Any, ...]:
        if block.weights is None:
            return (torch.tensor(float(block.size), dtype=torch.float64),)
        return (block.weights.double().sum(),)
