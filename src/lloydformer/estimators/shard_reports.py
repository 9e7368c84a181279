"""What ranks tell each other of their rows before a fit, and the errors if these do not fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.estimators.source import NoDirectionError

_COMPARED = (int, float, str, type(None), np.ndarray)
"""Kinds of parameters that are compared as they are."""
_OWN = frozenset({"callback", "verbose", "random_state", "device"})
"""Parameters that each rank may set as it likes; the random state is that of rank 0."""


@dataclass(frozen=True)
class ShardReport:
    """What a rank tells the others of its rows.

    Attributes
    ----------
    n_rows, n_features : int
        Their shape.
    dtype : str
        Their precision.
    names : tuple of str or None
        Names of the columns.
    ends : ndarray of shape (2, d) or None
        The smallest and the largest value of each column; None without rows.
    given_weights : bool
        Was `sample_weight` passed?
    heaviest : float
        The largest weight.
    n_weighted : int
        Number of rows with a weight above 0.
    n_zero, first_zero : int
        Number of rows of zeros and the first one, where directions are compared.
    parameters : dict
        Parameters of the estimator.
    """

    n_rows: int
    n_features: int
    dtype: str
    names: tuple[str, ...] | None
    ends: np.ndarray | None
    given_weights: bool
    heaviest: float
    n_weighted: int
    n_zero: int
    first_zero: int
    parameters: dict[str, Any]


def shared_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that must be the same on all ranks, in a form that can be compared."""
    found = {"estimator": type(estimator).__name__, **estimator.get_params(deep=False)}
    if found.get("warm_start"):
        found["cluster_centers_"] = getattr(estimator, "cluster_centers_", None)
    return {name: _plain(value) for name, value in found.items() if name not in _OWN}


def _plain(value: Any) -> Any:
    """A value that can be compared: numbers, texts and arrays as they are, others by their text."""
    if isinstance(value, Tensor):
        return value.detach().cpu().numpy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return np.asarray(value, dtype=object)
    if isinstance(value, _COMPARED):
        return value
    name = getattr(value, "__qualname__", None)
    text = repr(value) if name is None else f"{value.__module__}.{name}"
    return type(value).__name__ if " at 0x" in text else text


def _told(value: Any) -> str:
    """A parameter in an error message; few of the numbers of an array."""
    if not isinstance(value, np.ndarray):
        return str(value)
    first = ", ".join(map(str, value.ravel()[:3]))
    return f"an array of shape {value.shape} ({first}, ...)"


@dataclass(frozen=True)
class ShardReports:
    """The reports of all ranks, by their numbers."""

    reports: Sequence[ShardReport]

    @cached_property
    def _filled(self) -> list[tuple[int, ShardReport]]:
        """Those of ranks that have rows."""
        return [(rank, one) for rank, one in enumerate(self.reports) if one.n_rows]

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(one.n_rows for one in self.reports)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of all rows together."""
        wide = any(one.dtype == "float64" for _, one in self._filled)
        return torch.float64 if wide else torch.float32

    @property
    def ends(self) -> np.ndarray:
        """The smallest and the largest value of each column, (2, d)."""
        all_ends = np.stack([one.ends for _, one in self._filled if one.ends is not None])
        return np.stack([all_ends[:, 0].min(axis=0), all_ends[:, 1].max(axis=0)])

    @property
    def weighted(self) -> bool:
        """Do rows have weights, given ones or because some count for nothing?"""
        return any(one.given_weights or one.n_zero for _, one in self._filled)

    @property
    def heaviest(self) -> float:
        return max(one.heaviest for _, one in self._filled)

    @property
    def n_weighted(self) -> int:
        return sum(one.n_weighted for _, one in self._filled)

    def check(self, zero_rows: str) -> None:
        """Raise `ValueError` unless the rows of all ranks can be one array."""
        self._same("n_features", "X", "features", list(enumerate(self.reports)))
        if not self._filled:
            raise ValueError("X: found no rows on any rank; pass at least one sample")
        self._same("names", "X", "as names of the columns", self._filled)
        self._same("given_weights", "sample_weight", "as whether it is passed", self._filled)
        self._check_parameters()
        if self.heaviest == 0:
            raise ValueError("sample_weight: found only zeros; pass at least one non-zero weight")
        self._check_directions(zero_rows)

    def _same(
        self, field: str, name: str, what: str, among: Sequence[tuple[int, ShardReport]]
    ) -> None:
        first, *others = [(rank, getattr(one, field)) for rank, one in among]
        for rank, value in others:
            if value != first[1]:
                raise ValueError(
                    f"{name}: found {first[1]} {what} on rank {first[0]} and {value} on rank "
                    f"{rank}; pass the same on all ranks"
                )

    def _check_parameters(self) -> None:
        first = self.reports[0].parameters
        for rank, one in enumerate(self.reports):
            for name in first.keys() | one.parameters.keys():
                pair = [found.get(name, "another kind") for found in (first, one.parameters)]
                if not np.array_equal(np.asarray(pair[0]), np.asarray(pair[1])):
                    raise ValueError(
                        f"{name}: found {_told(pair[0])} on rank 0 and {_told(pair[1])} on rank "
                        f"{rank}; pass the same on all ranks"
                    )

    def _check_directions(self, zero_rows: str) -> None:
        n_rows, n_zero = sum(self.lengths), sum(one.n_zero for one in self.reports)
        if n_zero and (zero_rows != "ignore" or n_zero == n_rows):
            rank = next(rank for rank, one in enumerate(self.reports) if one.n_zero)
            row = sum(self.lengths[:rank]) + self.reports[rank].first_zero
            raise NoDirectionError(row, ignorable=zero_rows == "error" and n_zero < n_rows)
