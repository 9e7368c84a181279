"""K-medoids on a matrix of distances, given or computed by a callable."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import validate_data

from lloydformer.algorithms.medoid_schedule import swapping_rounds
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import choose
from lloydformer.estimators.devices import available_device
from lloydformer.estimators.source import weights_in_units
from lloydformer.plans.medoid_search import begin_search
from lloydformer.plans.session import Session

PAIRS = 32
"""Pairs of rows for which a callable is called in both orders."""


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


class InterruptedSwaps(KeyboardInterrupt):
    """Ctrl-C, with the best start so far; None if no start has ended."""

    def __init__(self, found: MatrixFit | None) -> None:
        super().__init__("stopped by the user")
        self.found = found


def fit_matrix(estimator: Any, X: Any, sample_weight: Any, rng: np.random.RandomState) -> MatrixFit:
    """The best of some starts of FasterPAM's swaps.

    Raises `InterruptedSwaps`, with the best start so far, on Ctrl-C.
    """
    if estimator.device is not None:
        available_device(estimator.device)
    given = _checked(estimator, X, reset=True)
    matrix = _symmetric(_distances(estimator, given, given))
    weights, unit = weights_in_units(sample_weight, len(matrix))
    _check_size(estimator, len(matrix) if weights is None else int((weights > 0).sum()))
    blocks = TensorBlocks(
        torch.from_numpy(matrix), None if weights is None else torch.from_numpy(weights),
        seen_from=torch.zeros(len(matrix), dtype=torch.from_numpy(matrix[:1]).dtype),
    )  # fmt: skip
    n_starts, runs = _n_starts(estimator), list[tuple[np.ndarray, list[float]]]()

    def best() -> MatrixFit:
        medoids, history = min(runs, key=lambda run: run[1][-1])
        labels = matrix[:, medoids].argmin(axis=1).astype(np.int32)
        return MatrixFit(medoids, labels, given[medoids], [v * unit for v in history], n_starts)

    try:
        with choose(estimator.engine, blocks).open(blocks) as session:
            for _ in range(n_starts):
                runs.append(_run(session, _start(estimator, matrix, weights, rng)))
    except KeyboardInterrupt:
        raise InterruptedSwaps(best() if runs else None) from None
    return best()


def distances_to_rows(estimator: Any, X: Any) -> np.ndarray:
    """Distances of other rows to the medoids, (m, k)."""
    given = _checked(estimator, X, reset=False)
    if callable(estimator.metric):
        return _distances(estimator, given, np.asarray(estimator.cluster_centers_))
    return given[:, estimator.medoid_indices_]


def _run(session: Session, start: np.ndarray) -> tuple[np.ndarray, list[float]]:
    search = begin_search(session, "precomputed", start)
    history = [search.loss]
    for _ in swapping_rounds(search, session.layout.n_rows):
        history.append(search.loss)
    return search.medoids.copy(), history


def _checked(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    array: np.ndarray = validate_data(
        estimator, X, reset=reset, dtype=[np.float64, np.float32], order="C"
    )
    return array


def _distances(estimator: Any, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    if not callable(estimator.metric):
        return X
    if X is Y:  # half of the distances are computed
        _check_order(estimator.metric, X)
    found = np.ascontiguousarray(pairwise_distances(X, Y, metric=estimator.metric))
    if not (found >= 0).all():
        raise ValueError(
            f"metric: {_name(estimator.metric)} returned {found[~(found >= 0)][0]}; pass a metric "
            "that returns numbers of at least 0"
        )
    return found


def _check_order(metric: Callable[..., float], X: np.ndarray) -> None:
    """Compare metric(a, b) with metric(b, a) for some neighbouring rows a, b."""
    firsts = np.unique(np.linspace(0, len(X) - 2, PAIRS if len(X) > 1 else 0).astype(int))
    there = np.array([metric(X[i], X[i + 1]) for i in firsts])
    back = np.array([metric(X[i + 1], X[i]) for i in firsts])
    tolerance = 1e-4 * np.abs(there) + 1e-6 * np.abs(there).max(initial=0)
    for at in np.flatnonzero(np.abs(there - back) > tolerance)[:1]:
        i = firsts[at]
        raise ValueError(
            f"metric: {_name(metric)} returned {there[at]} for rows {i} and {i + 1}, and "
            f"{back[at]} for rows {i + 1} and {i}; pass a metric that is symmetric"
        )


def _name(metric: Callable[..., float]) -> str:
    return getattr(metric, "__name__", repr(metric))


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f'X: found the shape {matrix.shape} with metric="precomputed"; pass a square matrix of '
            "distances"
        )
    if not (matrix >= 0).all():
        raise ValueError("X: found a distance below 0; pass distances that are not negative")
    if (row := np.flatnonzero(matrix.diagonal() > 1e-6 * float(matrix.max()))).size:
        raise ValueError(
            f"X: found the distance {matrix[row[0], row[0]]} of row {row[0]} to itself; pass "
            "distances, with zeros in the diagonal"
        )
    if not np.allclose(matrix, matrix.T, rtol=1e-4, atol=1e-6 * float(matrix.max())):
        raise ValueError(
            "X: found distances that are not symmetric; pass a symmetric matrix, for instance "
            "(X + X.T) / 2"
        )
    # The search compares sums of rows with sums of columns, so rounding must not tell them apart.
    exact = np.array_equal(matrix, matrix.T)
    return matrix if exact else np.ascontiguousarray((matrix + matrix.T) / 2)


def _check_size(estimator: Any, count: int) -> None:
    if count < estimator.n_clusters:
        raise ValueError(f"n_samples={count} should be >= n_clusters={estimator.n_clusters}.")


def _n_starts(estimator: Any) -> int:
    if not isinstance(estimator.init, str):
        return 1
    if estimator.n_init != "auto":
        return int(estimator.n_init)
    return 10 if estimator.init == "random" else 1


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
