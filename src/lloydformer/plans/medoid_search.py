"""The search for medoids on a session: by the engine's kernels, or by the plain search."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
from numpy import ndarray
from scipy import sparse
from torch import Tensor

from lloydformer.data.rows import SparseRows
from lloydformer.plans.assign import NearestDistances
from lloydformer.plans.contract import FinalAssignment, Plan
from lloydformer.plans.medoid_moves import (
    BATCH,
    InMemorySearch,
    MatrixDistances,
    PointDistances,
    SparseCosines,
)
from lloydformer.plans.session import Columns, PointBlock, Session, SumFold, Task, weighted_sum


@runtime_checkable
class SearchMoves(Protocol):
    """A search in progress: its medoids, their loss, and its moves.

    Every move returns True if the loss fell.
    """

    @property
    def medoids(self) -> ndarray: ...

    @property
    def loss(self) -> float: ...

    def descend(self, rounds: int, slack: float) -> bool: ...

    def exchange(self, seed: int, layer: int) -> bool: ...

    def relocate(self, seed: int, layer: int, n_moved: int, n_draws: int, slack: float) -> bool: ...

    def sweep(self, reach: int) -> bool: ...


# Up to this many rows a search takes milliseconds, so time does not count: it has its full
# patience, and a fit on a matrix of distances ten starts.
FEW = 256

# The first descent: rounds at most, and its slack (see `MedoidEffort`). Chosen by hand.
ROUNDS, SLACK = 100, 0.02


@dataclass(frozen=True)
class MedoidEffort:
    """Limits of a search.

    The settings were chosen on the sets that `TUNED` in benchmarks/medoids.py lists. All presets
    are measured in docs/medoids.md, on other sets as well.

    Attributes
    ----------
    patience : int
        Stop relocating after this number of relocations in a row that were not kept.
    quiet : int
        Stop drawing candidates after this number of batches in a row without success.
    pairs : int
        The last sweep compares about this many pairs of candidates and rows, but at least
        `fewest` candidates of each cluster.
    fewest : int
        See `pairs`.
    n_moved, n_draws : int
        Number of clusters that a relocation splits, and of draws for each split.
    slack : float
        Share of a cluster's rows that must have changed before a relocation examines it again.
    rows_each : int
        With more than `FEW` rows, `patience` is limited to the mean number of rows of a cluster
        divided by this; 0: no limit.
    """

    patience: int = 5
    quiet: int = 3
    pairs: int = 1 << 28
    fewest: int = 64
    n_moved: int = 5
    n_draws: int = 3
    slack: float = 0.1
    rows_each: int = 10

    def patience_for(self, n_rows: int, n_clusters: int) -> int:
        """Return `patience`, or less for small clusters, where exchanges find as much."""
        if self.rows_each == 0 or n_rows <= FEW:
            return self.patience
        return min(self.patience, max(1, n_rows // (self.rows_each * n_clusters)))

    def reach(self, n_rows: int, n_clusters: int) -> int:
        """Return the number of candidates of each cluster in the last sweep."""
        return max(self.fewest, self.pairs // (n_rows * n_clusters))


EFFORTS = {
    # Without relocations: 0.05 to 0.11 of the time of FasterPAM, and 0.1 to 0.3 % above its loss
    # (docs/medoids.md).
    "low": MedoidEffort(patience=0, pairs=1 << 22, fewest=16),
    # Below the loss of FasterPAM in 0.14 to 0.22 of its time (docs/medoids.md).
    "medium": MedoidEffort(),
    "high": MedoidEffort(patience=20, quiet=10, pairs=1 << 31, fewest=256, rows_each=0),
    # Chosen by hand, for those who have the time.
    "best": MedoidEffort(patience=80, quiet=30, pairs=1 << 33, fewest=1024, rows_each=0),
}


def relocating_rounds(
    search: SearchMoves, effort: MedoidEffort, seed: int, n_rows: int, first: int = 0
) -> Iterator[bool]:
    """Run a search move by move; yield after each whether the loss fell.

    first: number of the first layer of the noise, so that restarts draw different noise.
    """
    # From cheap moves to costly ones, so that the costly ones begin near an optimum. The last sweep
    # gives FasterPAM's guarantee: if it reaches all rows, no single exchange lowers the loss.
    k, layer = len(search.medoids), first
    yield search.descend(ROUNDS, SLACK)
    idle = 0
    while idle < effort.quiet:
        fell = search.exchange(seed, layer)
        idle, layer = 0 if fell else idle + 1, layer + 1
        yield fell
    idle, patience = 0, effort.patience_for(n_rows, k) if k > 1 else 0
    while idle < patience:
        fell = search.relocate(seed, layer, effort.n_moved, effort.n_draws, effort.slack)
        idle, layer = 0 if fell else idle + 1, layer + 1
        yield fell
    yield search.sweep(effort.reach(n_rows, k))


def swapping_rounds(search: SearchMoves, n_rows: int) -> Iterator[bool]:
    """Run FasterPAM's swaps: exchanges with every row, until none lowers the loss."""
    yield search.sweep(n_rows)


# Numbers that one call of a sweep compares, about: 0.2 to 0.9 s on one thread (20,000 x 2 to
# 200,000 x 16 rows). Signals are handled between calls, so Ctrl-C waits no longer than this.
CALL = 1 << 31
# The comparison of two rows counts as at least this many numbers: one SIMD register of float64.
WIDTH = 8


@dataclass(frozen=True)
class MedoidMove(Task):
    """One move of a search.

    Returns the loss, whether it fell, whether the move is done, and the medoids after it. A sweep
    that is not done continues in the next call.

    Attributes
    ----------
    name : str
        "begin" or a method of `SearchMoves`.
    medoids : Tensor of shape (k,)
        The rows of the medoids before the move.
    arguments : dict
        Arguments of the method; for "begin" the metric.
    """

    name: str
    medoids: Tensor
    arguments: dict[str, Any] = field(default_factory=dict)


class KernelSearch:
    """A search in the kernels of a session, with the methods of `SearchMoves`."""

    def __init__(self, session: Session, metric: str, medoids: np.ndarray) -> None:
        self.session, self.metric = session, metric
        self._rows = torch.from_numpy(np.array(medoids, np.int64))
        self.begun = self._run("begin", metric=metric) is not None

    @property
    def medoids(self) -> np.ndarray:
        return self._rows.numpy()

    def descend(self, rounds: int, slack: float) -> bool:
        return bool(self._run("descend", rounds=rounds, slack=slack))

    def exchange(self, seed: int, layer: int) -> bool:
        return bool(self._run("exchange", seed=seed, layer=layer))

    def relocate(self, seed: int, layer: int, n_moved: int, n_draws: int, slack: float) -> bool:
        how = {"seed": seed, "layer": layer, "moved": n_moved, "draws": n_draws, "slack": slack}
        return bool(self._run("relocate", **how))

    def sweep(self, reach: int) -> bool:
        """Sweep in several calls, so that Ctrl-C does not have to wait for the end."""
        layout = self.session.layout
        width = WIDTH if self.metric == "precomputed" else max(WIDTH, layout.n_features)
        most = max(BATCH, CALL // (layout.n_rows * width))  # candidates of one call
        fell, self._done = False, False
        while not self._done:
            fell |= bool(self._run("sweep", reach=reach, most=most))
        return fell

    def _run(self, name: str, **arguments: Any) -> bool | None:
        found = self.session.run(MedoidMove(name, self._rows, arguments))
        if found is None:
            return None
        loss, fell, self._done, rows = found
        # The kernels sum |x - y|^2 of unit vectors, which is twice 1 - cos.
        self._rows, self.loss = rows, float(loss) / 2 if self.metric == "cosine" else float(loss)
        return bool(fell)


@dataclass(frozen=True)
class AllRows:
    """Collect every row as it is read, in float64 or sparse, and the weights."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[list[Any], list[Tensor | None]]:
        rows = block.rows
        if isinstance(rows, SparseRows):
            return [rows.matrix.astype(np.float64)], [block.weights]
        return [rows.take(torch.arange(block.size, device=block.labels.device))], [block.weights]

    def merge(self, first: Any, second: Any) -> tuple[list[Any], list[Tensor | None]]:
        return first[0] + second[0], first[1] + second[1]


def begin_search(session: Session, metric: str, medoids: np.ndarray) -> SearchMoves:
    """Return a search that begins with these medoids: in the kernels, if the engine has them."""
    search = KernelSearch(session, metric, medoids)
    if search.begun:
        return search
    fallback = search_in_memory(session, metric)
    fallback.begin(medoids)
    return fallback


def search_in_memory(session: Session, metric: str) -> InMemorySearch:
    """Return a search over a copy of the rows of a session, in float64."""
    # Every engine can fold, so this needs no way of its own to read the rows (GPU, workers, files).
    parts, weights = session.fold(AllRows())
    w = None if weights[0] is None else torch.cat(weights).cpu().numpy()
    if not isinstance(parts[0], Tensor):
        return InMemorySearch(SparseCosines(sparse.csr_array(sparse.vstack(parts))), w)
    points = torch.cat(parts).double().cpu().numpy()
    if metric == "precomputed":
        return InMemorySearch(MatrixDistances(points), w)
    return InMemorySearch(PointDistances(points, metric), w)


@dataclass(frozen=True)
class ManhattanDistances(SumFold):
    """`NearestDistances` by Manhattan distances."""

    writes: ClassVar[Columns] = ("labels", "distances")

    centers: Tensor

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows = block.rows.take(torch.arange(block.size, device=block.labels.device))
        least = torch.cdist(rows, self.centers.to(rows), p=1).min(dim=1)
        block.labels.copy_(least.indices)
        block.distances.copy_(least.values)
        return (weighted_sum(block.distances, block.weights),)


@dataclass(frozen=True)
class DistanceSum(SumFold):
    """The sum of w times the square root of the distances that are stored in the session."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        return (weighted_sum(block.distances.double().sqrt(), block.weights),)


@dataclass(frozen=True)
class MedoidSearchPlan(Plan):
    """The last assignment to medoids by a metric.

    It has no `step`: the search is a run of moves (`solving/medoid_search.py`).
    """

    metric: str = "sqeuclidean"
    stops_on = "never"
    empties = "keep"

    @property
    def directions(self) -> bool:  # type: ignore[override]
        return self.metric == "cosine"

    @property
    def has_plain_inertia(self) -> bool:  # type: ignore[override]
        return self.metric in ("sqeuclidean", "cosine")

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        # Labels and distances of the returned medoids are computed again by folds: a search keeps
        # its own, and its kernels may have rounded them differently.
        if self.metric == "manhattan":
            (loss,) = session.fold(ManhattanDistances(centers))
        else:
            loss = session.fold(NearestDistances(centers, returned))[0]
            if self.metric == "euclidean":
                (loss,) = session.fold(DistanceSum())
            elif self.metric == "cosine":
                loss = loss / 2
        return FinalAssignment(loss.item(), loss.item())
