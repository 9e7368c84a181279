"""The search for medoids on a session: by the engine's kernels, or by the plain search."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.algorithms.medoid_distances import MatrixDistances, PointDistances, SparseCosines
from lloydformer.algorithms.medoid_schedule import SearchMoves
from lloydformer.algorithms.medoid_search import BATCH, MedoidSearch
from lloydformer.data.rows import SparseRows
from lloydformer.plans.assign import Measure
from lloydformer.plans.contract import Empties, Final, Step, StepByStep, StopsOn
from lloydformer.plans.session import Adding, Columns, PointBlock, Session, Task, total

CALL = 1 << 31
"""Numbers that one call of a sweep compares, about. Signals are handled between calls."""
WIDTH = 8
"""Numbers that the comparison of two rows counts as, at least."""


@dataclass(frozen=True)
class MedoidMove(Task):
    """One move of a search.

    Returns the loss, whether it fell, whether the move is done, and the medoids after it. A sweep
    that is not done goes on in the next call.

    Attributes
    ----------
    name : str
        "begin" or another method of `SearchMoves`.
    medoids : Tensor of shape (k,)
        Rows, before the move.
    arguments : dict
        Of the method; for "begin" the metric.
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

    def begin(self, medoids: np.ndarray) -> None:
        self._rows = torch.from_numpy(np.array(medoids, np.int64))
        self._run("begin", metric=self.metric)

    def descend(self, rounds: int, slack: float) -> bool:
        return bool(self._run("descend", rounds=rounds, slack=slack))

    def exchange(self, seed: int, layer: int) -> bool:
        return bool(self._run("exchange", seed=seed, layer=layer))

    def relocate(self, seed: int, layer: int, n_moved: int, n_draws: int, slack: float) -> bool:
        how = {"seed": seed, "layer": layer, "moved": n_moved, "draws": n_draws, "slack": slack}
        return bool(self._run("relocate", **how))

    def sweep(self, reach: int) -> bool:
        """Several calls, so that Ctrl-C does not have to wait for the end."""
        fell = bool(self._run("sweep", reach=reach, most=self._most()))
        while not self._done:
            fell |= bool(self._run("sweep", reach=reach, most=self._most()))
        return fell

    def _most(self) -> int:
        """Candidates of one call of a sweep."""
        layout = self.session.layout
        width = WIDTH if self.metric == "precomputed" else max(WIDTH, layout.n_features)
        return max(BATCH, CALL // (layout.n_rows * width))

    def _run(self, name: str, **arguments: Any) -> bool | None:
        found = self.session.run(MedoidMove(name, self._rows, arguments))
        if found is None:
            return None
        loss, fell, self._done, rows = found
        self._rows, self.loss = rows, float(loss) / 2 if self.metric == "cosine" else float(loss)
        return bool(fell)


@dataclass(frozen=True)
class AllRows:
    """Every row as it is read, in float64 or sparse, and the weights; for the plain search."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[list[Any], list[Tensor | None]]:
        rows = block.rows
        if isinstance(rows, SparseRows):
            return [rows.matrix.astype(np.float64)], [block.weights]
        return [rows.take(torch.arange(block.size, device=block.labels.device))], [block.weights]

    def merge(self, first: Any, second: Any) -> tuple[list[Any], list[Tensor | None]]:
        return first[0] + second[0], first[1] + second[1]


def begin_search(session: Session, metric: str, medoids: np.ndarray) -> SearchMoves:
    """A search that begins with these medoids: in the kernels, if the engine has them."""
    search = KernelSearch(session, metric, medoids)
    if search.begun:
        return search
    plain = plain_search(session, metric)
    plain.begin(medoids)
    return plain


def plain_search(session: Session, metric: str) -> MedoidSearch:
    """The plain search over the rows of a session, which are copied."""
    parts, weights = session.fold(AllRows())
    w = None if weights[0] is None else torch.cat(weights).cpu().numpy()
    if not isinstance(parts[0], Tensor):
        from scipy import sparse

        return MedoidSearch(SparseCosines(sparse.csr_array(sparse.vstack(parts))), w)
    points = torch.cat(parts).double().cpu().numpy()
    if metric == "precomputed":
        return MedoidSearch(MatrixDistances(points), w)
    return MedoidSearch(PointDistances(points, metric), w)


@dataclass(frozen=True)
class TaxicabMeasure(Adding):
    """`Measure` by Manhattan distances."""

    writes: ClassVar[Columns] = ("labels", "distances")

    centers: Tensor

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        rows = block.rows.take(torch.arange(block.size, device=block.labels.device))
        least = torch.cdist(rows, self.centers.to(rows), p=1).min(dim=1)
        block.labels.copy_(least.indices)
        block.distances.copy_(least.values)
        return (total(block.distances, block.weights),)


@dataclass(frozen=True)
class DistanceSum(Adding):
    """The sum of w times the square root of the distances that a session has."""

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        return (total(block.distances.double().sqrt(), block.weights),)


@dataclass(frozen=True)
class MedoidSearchPlan(StepByStep):
    """The last assignment to medoids by a metric; the search itself is a course."""

    metric: str = "sqeuclidean"
    stops_on: ClassVar[StopsOn] = "never"
    empties: ClassVar[Empties] = "keep"

    @property
    def directions(self) -> bool:
        return self.metric == "cosine"

    @property
    def counts_all(self) -> bool:  # type: ignore[override]
        return self.metric in ("sqeuclidean", "cosine")

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        raise NotImplementedError("the search for medoids has no iterations of a plan")

    def finish(self, session: Session, centers: Tensor) -> Final:
        if self.metric == "manhattan":
            (loss,) = session.fold(TaxicabMeasure(centers))
        else:
            loss = session.fold(Measure(centers))[0]
            if self.metric == "euclidean":
                (loss,) = session.fold(DistanceSum())
            elif self.metric == "cosine":
                loss = loss / 2
        return Final(loss.item(), loss.item())
