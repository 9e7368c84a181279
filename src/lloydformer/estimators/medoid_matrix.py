"""K-medoids on a matrix of distances, given or computed by a callable; and its checks."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import pairwise_distances
from torch import Tensor

from lloydformer.data.array_api import tensor_from_numpy, to_tensor
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import choose
from lloydformer.engines.thread_pool import callers_cores
from lloydformer.estimators.devices import require_device
from lloydformer.estimators.parameter_checks import check_enough_rows
from lloydformer.estimators.source import check_rows, weights_in_units
from lloydformer.numerics.search_constants import TIE
from lloydformer.plans.medoid_search import FEW, begin_search, swapping_rounds
from lloydformer.plans.session import Session

# Pairs of rows for which a callable is called in both orders; all pairs would double the calls of a
# fit. Chosen by hand.
PAIRS = 32

# Tolerances of distances that should be equal, relative to the distance and to the largest one,
# with room for matrices that were computed in float32. Chosen by hand.
_RELATIVE, _OF_LARGEST = 1e-4, 1e-6

# The medoids of a start, and its loss before and after the sweep.
SwapRun = tuple[np.ndarray, list[float]]


@dataclass(frozen=True)
class MatrixFit:
    """The result of a fit on a matrix.

    Attributes
    ----------
    medoids : ndarray of shape (k,)
        The rows of the medoids.
    labels : ndarray of shape (n,)
        The cluster of each row: the place of its nearest medoid.
    centers : ndarray of shape (k, d)
        The rows of X that are medoids.
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
    """Ctrl-C, with the best start so far, ended or not; None if no start has begun."""

    def __init__(self, found: MatrixFit | None) -> None:
        super().__init__("stopped by the user")
        self.found = found


def fit_matrix(estimator: Any, X: Any, sample_weight: Any, rng: np.random.RandomState) -> MatrixFit:
    """Return the best of some starts of FasterPAM's swaps.

    Raises `InterruptedSwaps`, with the best start so far, on Ctrl-C.
    """
    # The search runs on the CPU; a device that does not exist is an error all the same.
    if estimator.device is not None:
        require_device(estimator.device)
    array = as_array(estimator, X, reset=True)
    with callers_cores():  # the metric may be a function of the user
        matrix = all_distances(estimator, array)
    n = len(matrix)
    weights, unit = weights_in_units(sample_weight, n)
    check_enough_rows(estimator, n if weights is None else int((weights > 0).sum()), n)
    points = tensor_from_numpy(matrix)
    mass = None if weights is None else torch.from_numpy(weights)
    # The rows are distances: another origin than zero would change them.
    blocks = TensorBlocks(points, mass, given_origin=torch.zeros(n, dtype=points.dtype))
    if not isinstance(estimator.init, str):
        n_starts = 1
    elif estimator.n_init != "auto":
        n_starts = int(estimator.n_init)
    else:
        # Up to `FEW` rows ten starts take milliseconds.
        few = estimator.method == "relocate" and n <= FEW
        n_starts = 10 if few or estimator.init == "random" else 1
    runs = list[SwapRun]()

    def best() -> MatrixFit:
        # Of runs that differ by rounding alone the first one: engines agree on it.
        least = min(history[-1] for _, history in runs)
        medoids, history = next(run for run in runs if run[1][-1] <= (1 + TIE) * least)
        labels = matrix[:, medoids].argmin(axis=1).astype(np.int32)
        return MatrixFit(medoids, labels, array[medoids], [v * unit for v in history], n_starts)

    try:
        with choose(estimator.engine, blocks).open(blocks) as session:
            for _ in range(n_starts):
                _run(session, _draw_medoids(estimator, matrix, weights, rng), runs)
    except KeyboardInterrupt:
        raise InterruptedSwaps(best() if runs else None) from None
    return best()


def _run(session: Session, start: np.ndarray, runs: list[SwapRun]) -> None:
    """Run one start and add it to `runs`, even if it is interrupted."""
    search = begin_search(session, "precomputed", start)
    before = search.loss
    try:
        for _ in swapping_rounds(search, session.layout.n_rows):
            pass
    finally:
        runs.append((search.medoids.copy(), [before, search.loss]))


def _draw_medoids(
    estimator: Any, matrix: np.ndarray, weights: np.ndarray | None, rng: np.random.RandomState
) -> np.ndarray:
    """Return the rows to begin with: given ones, or drawn by weight times distance."""
    n, k = len(matrix), int(estimator.n_clusters)
    if not isinstance(estimator.init, str):
        rows = np.asarray(estimator.init)
        numbers = rows.shape == (k,) and rows.dtype.kind in "iu"
        if not (numbers and len(np.unique(rows)) == k and rows.min() >= 0 and rows.max() < n):
            raise ValueError(
                f"init: found {estimator.init!r}; with distances pass {k} different row numbers "
                f'below {n}, "k-means++" or "random"'
            )
        if weights is not None and not weights[rows].all():
            row = rows[weights[rows] == 0][0]
            raise ValueError(f"init: found row {row}, whose weight is 0; pass rows with weight")
        return rows.astype(np.int64)
    mass = np.ones(n) if weights is None else weights
    if estimator.init == "random":
        return rng.choice(n, k, replace=False, p=mass / mass.sum())
    drawn = [int(rng.choice(n, p=mass / mass.sum()))]
    while len(drawn) < k:
        shares = mass * matrix[drawn].min(axis=0)
        shares[drawn] = 0
        if not shares.sum() > 0:  # all other rows coincide with a medoid: draw by weight alone
            shares = mass.copy()
            shares[drawn] = 0
        drawn.append(int(rng.choice(n, p=shares / shares.sum())))
    return np.array(drawn)


def as_array(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """Return X as an array in float32 or float64; given distances may be infinite."""
    if isinstance(X, Tensor):
        halves = X.dtype in (torch.float16, torch.bfloat16)
        X = (X.float() if halves else X).detach().cpu().numpy()
    array: np.ndarray = check_rows(
        estimator,
        X,
        reset=reset,
        # distances are checked by `_check_values`, whose message has their place
        ensure_all_finite=callable(estimator.metric),
    )
    return array


def to_input_kind(X: Any, result: np.ndarray) -> Any:
    """Return a result as a tensor on the device of X, if X is a tensor."""
    return tensor_from_numpy(result).to(X.device) if isinstance(X, Tensor) else result


def all_distances(estimator: Any, array: np.ndarray) -> np.ndarray:
    """Return the distances of all rows to each other, (n, n), with zeros in the diagonal."""
    metric = estimator.metric
    if callable(metric):
        # `pairwise_distances` computes half of the distances and mirrors them.
        _check_order(metric, array)
        matrix = _compute_distances(metric, array, array)
        _check_diagonal(metric, matrix)
        return matrix
    if array.shape[0] != array.shape[1]:
        raise ValueError(
            f'X: found the shape {array.shape} with metric="precomputed"; pass a square matrix of '
            "distances"
        )
    _check_values("precomputed", array)
    _check_diagonal("precomputed", array)
    if not np.allclose(array, array.T, rtol=_RELATIVE, atol=_OF_LARGEST * float(array.max())):
        raise ValueError(
            "X: found distances that are not symmetric; pass a symmetric matrix, for instance "
            "(X + X.T) / 2"
        )
    # The search compares sums of rows with sums of columns, so rounding must not tell them apart.
    exact = np.array_equal(array, array.T)
    return array if exact else np.ascontiguousarray((array + array.T) / 2)


def distances_to_medoids(estimator: Any, X: Any) -> np.ndarray:
    """Return the distances of other rows to the medoids, (m, k)."""
    array = as_array(estimator, X, reset=False)
    if callable(estimator.metric):
        centers = to_tensor(estimator.cluster_centers_).cpu().numpy()
        return _compute_distances(estimator.metric, array, centers)
    _check_values("precomputed", array)
    return array[:, to_tensor(estimator.medoid_indices_).cpu().numpy()]


def _compute_distances(metric: Callable[..., Any], X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    number = partial(_call_metric, metric)
    distances = np.ascontiguousarray(pairwise_distances(X, Y, metric=number))
    _check_values(metric, distances)
    return distances


def _call_metric(metric: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> float:
    """Return the distance of two rows; raises `ValueError` unless it is one number."""
    distance = metric(a, b)
    value = np.asarray(distance)
    if value.ndim or value.dtype.kind not in "biuf":
        raise ValueError(
            f"metric: {_name(metric)} returned {distance!r}; pass a function that returns one "
            "number"
        )
    return float(value)


def _check_values(metric: Any, distances: np.ndarray) -> None:
    """Raise `ValueError` unless distances are at least 0, and their sums finite."""
    # The kernels double a distance, and add up all rows in float64, with weights.
    largest = float(np.finfo(np.float64).max) / (64 * len(distances))
    limit = min(float(np.finfo(distances.dtype).max) / 4, largest)
    if distances.min() >= 0 and distances.max() <= limit:  # both are NaN if a distance is
        return
    i, j = np.argwhere(~((distances >= 0) & (distances <= limit)))[0].tolist()
    rule = "not below 0" if distances[i, j] < 0 else f"finite and at most {limit:.2g}"
    origin = _describe_origin(metric, float(distances[i, j]), i, j)
    raise ValueError(f"{origin}; pass distances that are {rule}")


def _check_diagonal(metric: Any, matrix: np.ndarray) -> None:
    for row in np.flatnonzero(matrix.diagonal() > _OF_LARGEST * float(matrix.max()))[:1].tolist():
        origin = _describe_origin(metric, float(matrix[row, row]), row, row)
        raise ValueError(f"{origin}; pass distances that are 0 there")


def _describe_origin(metric: Any, value: float, i: int, j: int) -> str:
    """Return the beginning of a message: the function or matrix that a distance is from."""
    pair = f"row {i} to itself" if i == j else f"rows {i} and {j}"
    if callable(metric):
        return f"metric: {_name(metric)} returned {value} as the distance of {pair}"
    return f"X: found the distance {value} of {pair}"


def _check_order(metric: Callable[..., Any], X: np.ndarray) -> None:
    """Raise `ValueError` if metric(a, b) is not metric(b, a) for some neighbouring rows a, b."""
    firsts = np.unique(np.linspace(0, len(X) - 2, PAIRS if len(X) > 1 else 0).astype(int))
    there = np.array([_call_metric(metric, X[i], X[i + 1]) for i in firsts])
    back = np.array([_call_metric(metric, X[i + 1], X[i]) for i in firsts])
    if not (np.isfinite(there).all() and np.isfinite(back).all()):
        return  # `_check_values` raises for these
    tolerance = _RELATIVE * np.abs(there) + _OF_LARGEST * np.abs(there).max(initial=0)
    for at in np.flatnonzero(np.abs(there - back) > tolerance)[:1]:
        i = firsts[at]
        raise ValueError(
            f"metric: {_name(metric)} returned {there[at]} for rows {i} and {i + 1}, and "
            f"{back[at]} for rows {i + 1} and {i}; pass a metric that is symmetric"
        )


def _name(metric: Callable[..., Any]) -> str:
    return getattr(metric, "__name__", repr(metric))
