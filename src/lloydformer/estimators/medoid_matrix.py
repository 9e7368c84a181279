"""K-medoids on a matrix of distances, given or computed by a callable."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from lloydformer.algorithms.medoid_schedule import FEW, swapping_rounds
from lloydformer.algorithms.medoid_search import LEAST
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.namespaces import unwarned
from lloydformer.engines import choose
from lloydformer.estimators.devices import available_device
from lloydformer.estimators.distance_matrix import all_distances, as_array
from lloydformer.estimators.source import weights_in_units
from lloydformer.plans.medoid_search import begin_search
from lloydformer.plans.session import Session


@dataclass(frozen=True)
class MatrixFit:
    """What a fit on a matrix has found.

    Attributes
    ----------
    medoids, labels : ndarray
        Rows (k,), and the nearest medoid of each row (n,).
    centers : ndarray of shape (k, d)
        The medoids' rows of what was passed.
    history : list of float
        The loss before each sweep, and at the end.
    n_starts : int
        Number of starts.
    """

    medoids: np.ndarray
    labels: np.ndarray
    centers: np.ndarray
    history: list[float]
    n_starts: int


SwapRun = tuple[np.ndarray, list[float]]
"""The medoids of a start, and its loss before and after the sweep."""


class InterruptedSwaps(KeyboardInterrupt):
    """Ctrl-C, with the best start so far, ended or not; None if no start has begun."""

    def __init__(self, found: MatrixFit | None) -> None:
        super().__init__("stopped by the user")
        self.found = found


def fit_matrix(estimator: Any, X: Any, sample_weight: Any, rng: np.random.RandomState) -> MatrixFit:
    """The best of some starts of FasterPAM's swaps.

    Raises `InterruptedSwaps`, with the best start so far, on Ctrl-C.
    """
    if estimator.device is not None:
        available_device(estimator.device)
    given = as_array(estimator, X, reset=True)
    matrix = all_distances(estimator, given)
    weights, unit = weights_in_units(sample_weight, len(matrix))
    _check_size(estimator, weights, len(matrix))
    points = unwarned(matrix)
    blocks = TensorBlocks(
        points, None if weights is None else torch.from_numpy(weights),
        seen_from=torch.zeros(len(matrix), dtype=points.dtype),
    )  # fmt: skip
    n_starts, runs = _n_starts(estimator, len(matrix)), list[SwapRun]()

    def best() -> MatrixFit:
        medoids, history = _best(runs)
        labels = matrix[:, medoids].argmin(axis=1).astype(np.int32)
        return MatrixFit(medoids, labels, given[medoids], [v * unit for v in history], n_starts)

    try:
        with choose(estimator.engine, blocks).open(blocks) as session:
            for _ in range(n_starts):
                _run(session, _start(estimator, matrix, weights, rng), runs)
    except KeyboardInterrupt:
        raise InterruptedSwaps(best() if runs else None) from None
    return best()


def _best(runs: list[SwapRun]) -> SwapRun:
    """The run with the lowest loss; the first of those that differ by rounding alone."""
    least = min(history[-1] for _, history in runs)
    return next(run for run in runs if run[1][-1] <= (1 + LEAST) * least)


def _run(session: Session, start: np.ndarray, runs: list[SwapRun]) -> None:
    """Run one start and add it to `runs`, also if it is interrupted."""
    search = begin_search(session, "precomputed", start)
    before = search.loss
    try:
        for _ in swapping_rounds(search, session.layout.n_rows):
            pass
    finally:
        runs.append((search.medoids.copy(), [before, search.loss]))


def _check_size(estimator: Any, weights: np.ndarray | None, n_rows: int) -> None:
    count = n_rows if weights is None else int((weights > 0).sum())
    if count < estimator.n_clusters:
        raise ValueError(
            f"n_samples={count} should be >= n_clusters={estimator.n_clusters}."
            + (" Rows of weight 0 do not count." if count < n_rows else "")
        )


def _n_starts(estimator: Any, n_rows: int) -> int:
    if not isinstance(estimator.init, str):
        return 1
    if estimator.n_init != "auto":
        return int(estimator.n_init)
    few = estimator.algorithm == "relocate" and n_rows <= FEW
    return 10 if few or estimator.init == "random" else 1


def _start(
    estimator: Any, matrix: np.ndarray, weights: np.ndarray | None, rng: np.random.RandomState
) -> np.ndarray:
    """Rows to begin with: given ones, or drawn in proportion to weight times distance."""
    n, k = len(matrix), int(estimator.n_clusters)
    if not isinstance(estimator.init, str):
        return _given_rows(estimator.init, n, k, weights)
    mass = np.ones(n) if weights is None else weights
    if estimator.init == "random":
        return rng.choice(n, k, replace=False, p=mass / mass.sum())
    rows = [int(rng.choice(n, p=mass / mass.sum()))]
    while len(rows) < k:
        shares = mass * matrix[rows].min(axis=0)
        shares[rows] = 0
        if not shares.sum() > 0:
            shares = mass.copy()
            shares[rows] = 0
        rows.append(int(rng.choice(n, p=shares / shares.sum())))
    return np.array(rows)


def _given_rows(init: Any, n: int, k: int, weights: np.ndarray | None) -> np.ndarray:
    rows = np.asarray(init)
    fine = rows.shape == (k,) and rows.dtype.kind in "iu"
    if not (fine and len(np.unique(rows)) == k and rows.min() >= 0 and rows.max() < n):
        raise ValueError(
            f"init: found {init!r}; with distances pass {k} different row numbers below {n}, "
            '"k-means++" or "random"'
        )
    if weights is not None and not weights[rows].all():
        row = rows[weights[rows] == 0][0]
        raise ValueError(f"init: found row {row}, whose weight is 0; pass rows with weight")
    return rows.astype(np.int64)
