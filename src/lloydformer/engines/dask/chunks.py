"""Chunks of dask collections: delayed blocks of rows, and a survey of each of them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


def is_collection(X: Any) -> bool:
    """Return whether X is a dask array, data frame or list of delayed blocks; imports no dask.

    Raises `ValueError` for futures of distributed, which are not a collection.
    """
    dask = sys.modules.get("dask")
    if dask is None:
        return False
    distributed = sys.modules.get("distributed")
    first = X[0] if isinstance(X, list | tuple) and len(X) else X
    if distributed is not None and isinstance(first, distributed.Future):
        raise ValueError(
            "found a Future of distributed; pass a list of delayed blocks: "
            "[dask.delayed(future) for future in futures]"
        )
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(dask.is_dask_collection(each) for each in X)
    return bool(dask.is_dask_collection(X))


def is_array(X: Any) -> bool:
    """Return whether this collection is a dask array."""
    from dask.delayed import Delayed

    # A Delayed claims to have every attribute.
    return not isinstance(X, Delayed) and hasattr(X, "rechunk")


@dataclass(frozen=True)
class Chunks:
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
    def from_collection(cls, X: Any) -> "Chunks":
        from dask.delayed import Delayed

        names = None
        if is_array(X):
            if X.ndim != 2:
                raise ValueError(f"X: found a dask array with {X.ndim} axes; pass rows and columns")
            X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        elif not isinstance(X, list | tuple | Delayed) and hasattr(X, "columns"):
            # As scikit-learn keeps names of columns: None unless they are strings.
            kinds = sorted({type(name).__name__ for name in X.columns})
            if "str" in kinds and len(kinds) > 1:
                raise TypeError(
                    f"X: found column names of the types {kinds}; pass names that are strings"
                )
            names = tuple(X.columns) if kinds == ["str"] else None
        return cls(list_blocks(X), names)


def list_blocks(X: Any) -> list[Any]:
    """Return the delayed blocks of a collection, in their order."""
    from dask.delayed import Delayed

    if isinstance(X, Delayed):
        return [X]
    if isinstance(X, list | tuple):
        return list(X)
    blocks = X.to_delayed()
    return list(blocks.ravel() if is_array(X) else blocks)


def split_weights(sample_weight: Any, lengths: Sequence[int]) -> list[Any]:
    """Return the weights of each chunk: delayed, or arrays."""
    n_rows = sum(lengths)
    if is_collection(sample_weight) and is_array(sample_weight):
        known = not any(np.isnan(length) for length in sample_weight.chunks[0])
        if known and sample_weight.shape != (n_rows,):
            raise ValueError(
                f"sample_weight: found shape {sample_weight.shape}; pass one weight for each of "
                f"the {n_rows} rows of X"
            )
        # Weights are read beside their rows: the chunks of both must end at the same rows.
        if known and sample_weight.chunks[0] != tuple(lengths):
            sample_weight = sample_weight.rechunk((tuple(lengths),))
    if is_collection(sample_weight):
        blocks = list_blocks(sample_weight)
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
class ChunkSurvey:
    """The result of a look at one chunk.

    Attributes
    ----------
    n_rows, n_features : int
        Its shape.
    is_float32 : bool
        Its numbers are float32; others are read as float64.
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
    is_float32: bool
    ends: np.ndarray | None
    not_finite: int | None
    no_direction: int | None
    n_zero: int


def to_rows(number: int, block: Any) -> np.ndarray:
    """Return a chunk as an array (m, d) of floats."""
    array = block.to_numpy() if hasattr(block, "to_numpy") else block
    if type(array).__module__.startswith("scipy.sparse"):
        raise ValueError(
            f"X: partition {number} is a sparse matrix; pass dense blocks, or a sparse matrix that "
            "is not a dask collection"
        )
    array = np.asarray(array)
    if array.ndim != 2:
        raise ValueError(
            f"X: partition {number} has the shape {array.shape}; pass rows and columns"
        )
    # As scikit-learn: float32 stays, all other numbers become float64.
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    try:
        if array.dtype.kind not in "biufO":
            raise TypeError(f"its dtype is {array.dtype}")
        return np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X: partition {number} is not made of numbers: {error}") from None


def survey_chunk(number: int, block: Any) -> ChunkSurvey:
    """Look at a chunk, on the worker that has it."""
    rows = to_rows(number, block)
    finite = np.isfinite(rows).all(axis=1) if len(rows) else np.ones(0, dtype=bool)
    zero = ~rows.any(axis=1)
    return ChunkSurvey(
        n_rows=len(rows),
        n_features=rows.shape[1],
        is_float32=rows.dtype == np.float32,
        ends=np.stack([rows.min(axis=0), rows.max(axis=0)]) if len(rows) else None,
        not_finite=None if finite.all() else int(np.argmin(finite)),
        no_direction=int(np.argmax(zero)) if zero.any() else None,
        n_zero=int(zero.sum()),
    )


def take_rows(number: int, block: Any, rows: np.ndarray) -> np.ndarray:
    """Return some rows of a chunk by their numbers in it."""
    return to_rows(number, block)[rows]


@dataclass(frozen=True)
class WeightSurvey:
    """The result of a look at the weights of one chunk, without rows that do not count.

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


def survey_weights(number: int, weights: Any, block: Any, directions: bool) -> WeightSurvey:
    """Look at the weights of a chunk; wrong ones raise `ValueError`."""
    rows = to_rows(number, block)
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
    # Rows of zeros have no direction and do not count, so their weights must not set the unit.
    counted = array[array > 0] if not directions else array[(array > 0) & rows.any(axis=1)]
    if len(counted) == 0:
        return WeightSurvey(0.0, np.inf, 0)
    return WeightSurvey(float(counted.max()), float(counted.min()), len(counted))
