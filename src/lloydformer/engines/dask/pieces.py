"""Dask collections as pieces: delayed blocks of rows, and what a look at each of them finds."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def is_collection(X: Any) -> bool:
    """Is X a dask array, a dask data frame, or a list of delayed blocks? Does not import dask."""
    dask = sys.modules.get("dask")
    if dask is None:
        return False
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(dask.is_dask_collection(each) for each in X)
    return bool(dask.is_dask_collection(X))


@dataclass(frozen=True)
class Pieces:
    """Delayed blocks of rows, in their order.

    Attributes
    ----------
    blocks : list of Delayed
        Arrays (m, d) or data frames.
    names : tuple of str or None
        Of the columns.
    """

    blocks: list[Any]
    names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, X: Any) -> "Pieces":
        if isinstance(X, list | tuple):
            return cls(list(X))
        if hasattr(X, "rechunk"):
            return cls(_blocks_of_array(X))
        if hasattr(X, "columns"):
            return cls(list(X.to_delayed()), tuple(str(name) for name in X.columns))
        if hasattr(X, "to_delayed"):
            return cls(list(X.to_delayed()))
        return cls([X])  # one delayed block


def _blocks_of_array(X: Any) -> list[Any]:
    if X.ndim != 2:
        raise ValueError(f"X: found a dask array with {X.ndim} axes; pass rows and columns")
    whole = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    return list(whole.to_delayed().ravel())


def weights_of(sample_weight: Any, lengths: Sequence[int]) -> list[Any]:
    """The weights of each piece: delayed, or arrays."""
    n_rows = sum(lengths)
    if hasattr(sample_weight, "rechunk"):
        known = not any(np.isnan(length) for length in sample_weight.chunks[0])
        if known and sample_weight.shape != (n_rows,):
            raise ValueError(
                f"sample_weight: found shape {sample_weight.shape}; pass one weight for each of "
                f"the {n_rows} rows of X"
            )
        if known and sample_weight.chunks[0] != tuple(lengths):
            sample_weight = sample_weight.rechunk((tuple(lengths),))
    if is_collection(sample_weight):
        listed = isinstance(sample_weight, list | tuple)
        blocks = list(sample_weight if listed else np.ravel(sample_weight.to_delayed()))
        if len(blocks) != len(lengths):
            raise ValueError(
                f"sample_weight: found {len(blocks)} partitions, and X has {len(lengths)}; "
                "pass as many, of the same lengths"
            )
        return blocks
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.broadcast_to(weights, n_rows)
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight: found shape {weights.shape}; pass one weight for each of the "
            f"{n_rows} rows of X"
        )
    return np.split(weights, np.cumsum(lengths)[:-1])


@dataclass(frozen=True)
class PieceSurvey:
    """What a look at one piece finds.

    Attributes
    ----------
    n_rows, n_features : int
        Its shape.
    single : bool
        Are its numbers float32? Others are read as float64.
    ends : ndarray of shape (2, d) or None
        The smallest and the largest value of each column; None if it has no rows.
    not_finite : int or None
        The first row with NaN or infinity.
    no_direction : int or None
        The first row of zeros.
    n_zero : int
        Number of rows of zeros.
    """

    n_rows: int
    n_features: int
    single: bool
    ends: np.ndarray | None
    not_finite: int | None
    no_direction: int | None
    n_zero: int


def rows_of(number: int, block: Any) -> np.ndarray:
    """A piece as an array (m, d) of floats."""
    array = block.to_numpy() if hasattr(block, "to_numpy") else block
    if type(array).__module__.startswith("scipy.sparse"):
        raise ValueError(
            f"X: partition {number} is a sparse matrix; pass dense blocks, or a sparse matrix that "
            "is no dask collection"
        )
    array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(
            f"X: partition {number} has the shape {array.shape}; pass rows and columns"
        )
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    try:
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its dtype is {array.dtype}")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X: partition {number} is not made of numbers: {error}") from None


def surveyed(number: int, block: Any) -> PieceSurvey:
    """Look at a piece, on the worker that has it."""
    rows = rows_of(number, block)
    finite = np.isfinite(rows).all(axis=1) if len(rows) else np.ones(0, dtype=bool)
    zero = ~rows.any(axis=1)
    return PieceSurvey(
        len(rows), rows.shape[1], rows.dtype == np.float32,
        np.stack([rows.min(axis=0), rows.max(axis=0)]) if len(rows) else None,
        None if finite.all() else int(np.argmin(finite)),
        int(np.argmax(zero)) if zero.any() else None, int(zero.sum()),
    )  # fmt: skip


@dataclass(frozen=True)
class WeightSurvey:
    """What a look at the weights of one piece finds; rows that do not count are left out.

    Attributes
    ----------
    largest : float
        The largest weight; 0 if there is none.
    smallest : float
        The smallest weight above 0; infinity if there is none.
    n_weighted : int
        Number of weights above 0.
    """

    largest: float
    smallest: float
    n_weighted: int


def weights_surveyed(number: int, weights: Any, block: Any, directions: bool) -> WeightSurvey:
    """Look at the weights of a piece; wrong ones raise."""
    rows = rows_of(number, block)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (len(rows),):
        raise ValueError(
            f"sample_weight: partition {number} has the shape {array.shape}, and X has "
            f"{len(rows)} rows there"
        )
    if not np.isfinite(array).all():
        raise ValueError(f"sample_weight: found NaN or infinity in partition {number}")
    if (array < 0).any():
        raise ValueError(
            f"sample_weight: found the negative weight {array[array < 0][0]} in partition "
            f"{number}; pass weights of at least 0"
        )
    counted = array[array > 0] if not directions else array[(array > 0) & rows.any(axis=1)]
    if len(counted) == 0:
        return WeightSurvey(0.0, np.inf, 0)
    return WeightSurvey(float(counted.max()), float(counted.min()), len(counted))
