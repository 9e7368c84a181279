"""The matrix of distances of a k-medoids fit: given, or computed by a callable; and its checks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import validate_data
from torch import Tensor

from lloydformer.data.namespaces import tensor_of, unwarned

PAIRS = 32
"""Pairs of rows for which a callable is called in both orders."""


def as_array(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """What the user passed, as an array in float32 or float64; its numbers may be infinite."""
    if isinstance(X, Tensor):
        halves = X.dtype in (torch.float16, torch.bfloat16)
        X = (X.float() if halves else X).detach().cpu().numpy()
    array: np.ndarray = validate_data(
        estimator, X, reset=reset, dtype=[np.float64, np.float32], order="C",
        ensure_all_finite=callable(estimator.metric),
    )  # fmt: skip
    return array


def as_given(X: Any, found: np.ndarray) -> Any:
    """A result as the user wants it: a tensor on the device of X, if X is a tensor."""
    return unwarned(found).to(X.device) if isinstance(X, Tensor) else found


def all_distances(estimator: Any, given: np.ndarray) -> np.ndarray:
    """The distances of all rows to each other, (n, n): symmetric, with zeros in the diagonal."""
    if callable(estimator.metric):  # pairwise_distances computes half of the distances
        _check_order(estimator.metric, given)
        matrix = _computed(estimator.metric, given, given)
        _check_diagonal(estimator.metric, matrix)
        return matrix
    if given.shape[0] != given.shape[1]:
        raise ValueError(
            f'X: found the shape {given.shape} with metric="precomputed"; pass a square matrix of '
            "distances"
        )
    _check_values("precomputed", given)
    _check_diagonal("precomputed", given)
    return _symmetric(given)


def distances_to_medoids(estimator: Any, X: Any) -> np.ndarray:
    """The distances of other rows to the medoids, (m, k)."""
    given = as_array(estimator, X, reset=False)
    if callable(estimator.metric):
        centers = tensor_of(estimator.cluster_centers_).cpu().numpy()
        return _computed(estimator.metric, given, centers)
    _check_values("precomputed", given)
    return given[:, tensor_of(estimator.medoid_indices_).cpu().numpy()]


def _computed(metric: Callable[..., Any], X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    found = np.ascontiguousarray(pairwise_distances(X, Y, metric=partial(_number, metric)))
    _check_values(metric, found)
    return found


def _number(metric: Callable[..., Any], a: np.ndarray, b: np.ndarray) -> float:
    """Call a metric; raises unless it returns one number."""
    found = metric(a, b)
    value = np.asarray(found)
    if value.ndim or value.dtype.kind not in "biuf":
        raise ValueError(
            f"metric: {_name(metric)} returned {found!r}; pass a function that returns one number"
        )
    return float(value)


def _check_values(metric: Any, found: np.ndarray) -> None:
    """Raise unless distances are at least 0, and so small that their sums are finite."""
    limit = _largest_distance(found.dtype, len(found))
    if found.min() >= 0 and found.max() <= limit:  # both are NaN if a distance is
        return
    i, j = np.argwhere(~((found >= 0) & (found <= limit)))[0].tolist()
    rule = "not below 0" if found[i, j] < 0 else f"finite and at most {limit:.2g}"
    raise ValueError(f"{_told(metric, float(found[i, j]), i, j)}; pass distances that are {rule}")


def _largest_distance(dtype: np.dtype, n_rows: int) -> float:
    """The kernels double a distance, and add up n_rows of them in float64, with weights."""
    return min(float(np.finfo(dtype).max) / 4, float(np.finfo(np.float64).max) / (64 * n_rows))


def _check_diagonal(metric: Any, matrix: np.ndarray) -> None:
    for row in np.flatnonzero(matrix.diagonal() > 1e-6 * float(matrix.max()))[:1].tolist():
        told = _told(metric, float(matrix[row, row]), row, row)
        raise ValueError(f"{told}; pass distances that are 0 there")


def _told(metric: Any, value: float, i: int, j: int) -> str:
    """The beginning of a message: where a value comes from."""
    pair = f"row {i} to itself" if i == j else f"rows {i} and {j}"
    if callable(metric):
        return f"metric: {_name(metric)} returned {value} as the distance of {pair}"
    return f"X: found the distance {value} of {pair}"


def _check_order(metric: Callable[..., Any], X: np.ndarray) -> None:
    """Compare metric(a, b) with metric(b, a) for some neighbouring rows a, b."""
    firsts = np.unique(np.linspace(0, len(X) - 2, PAIRS if len(X) > 1 else 0).astype(int))
    there = np.array([_number(metric, X[i], X[i + 1]) for i in firsts])
    back = np.array([_number(metric, X[i + 1], X[i]) for i in firsts])
    if not (np.isfinite(there).all() and np.isfinite(back).all()):
        return  # `_check_values` will tell
    tolerance = 1e-4 * np.abs(there) + 1e-6 * np.abs(there).max(initial=0)
    for at in np.flatnonzero(np.abs(there - back) > tolerance)[:1]:
        i = firsts[at]
        raise ValueError(
            f"metric: {_name(metric)} returned {there[at]} for rows {i} and {i + 1}, and "
            f"{back[at]} for rows {i + 1} and {i}; pass a metric that is symmetric"
        )


def _name(metric: Callable[..., Any]) -> str:
    return getattr(metric, "__name__", repr(metric))


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    if not np.allclose(matrix, matrix.T, rtol=1e-4, atol=1e-6 * float(matrix.max())):
        raise ValueError(
            "X: found distances that are not symmetric; pass a symmetric matrix, for instance "
            "(X + X.T) / 2"
        )
    # The search compares sums of rows with sums of columns, so rounding must not tell them apart.
    exact = np.array_equal(matrix, matrix.T)
    return matrix if exact else np.ascontiguousarray((matrix + matrix.T) / 2)
