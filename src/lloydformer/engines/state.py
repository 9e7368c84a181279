"""What a session remembers of each point: one array for each named column."""

from threading import Lock

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.data.mapped_files import scratch_array

_KINDS = {
    torch.int32: np.int32, torch.float32: np.float32, torch.float64: np.float64,
    torch.bool: np.bool_,
}  # fmt: skip
_UNKNOWN = torch.iinfo(torch.int32).min
"""`previous` of a point that has no label of an earlier iteration."""
_START: dict[str, int | None] = {
    "labels": -1, "previous": _UNKNOWN, "second": None, "distances": None, "trimmed": 0,
}  # fmt: skip
"""The first value of each column; None: not initialised, a fold writes it before it is read."""


class PointState:
    """Columns of one number a point, created when they are first used.

    Labels, previous labels and distances take 12 to 16 bytes a point. On the CPU large columns
    are mapped from a scratch file.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._columns: dict[str, Tensor] = {}
        self._lock = Lock()
        self._lent = False

    def column(self, name: str) -> Tensor:
        """The array (n,) of a column, which may be written."""
        if name not in self._columns:
            with self._lock:  # blocks are mapped by several threads
                if name not in self._columns:
                    self._columns[name] = self._created(name)
        return self._columns[name]

    def known(self, name: str) -> Tensor | None:
        """The array of a column; None if nothing has used it."""
        return self._columns.get(name)

    def copy_of(self, name: str) -> Tensor | None:
        """A copy of a column; None if nothing has used it."""
        known = self.known(name)
        return None if known is None else _copied(torch.empty_like(known), known)

    def set_labels(self, labels: Tensor) -> None:
        """Take over labels (n,), int32, that somebody else has written."""
        self._columns["labels"], self._lent = labels, False

    def lend_labels(self) -> Tensor:
        """The labels, as they are now. `reclaim` must be called before the next write."""
        self._lent = True
        return self.column("labels")

    def reclaim(self) -> None:
        """Continue on a copy of the labels if they have been lent."""
        if self._lent:
            self._columns["labels"] = _copied(self._allocated("labels"), self._columns["labels"])
            self._lent = False

    def forget(self) -> None:
        """Forget the labels of the last iteration."""
        known = self.known("previous")
        if known is not None:  # a new column begins this way
            _filled(known, _UNKNOWN)

    def _created(self, name: str) -> Tensor:
        start, column = _START[name], self._allocated(name)
        return column if start is None else _filled(column, start)

    def _allocated(self, name: str) -> Tensor:
        layout, dtype = self._layout, self._dtype(name)
        if layout.device.type != "cpu":
            return torch.empty(layout.n_rows, dtype=dtype, device=layout.device)
        everything = layout.n_rows * (2 * torch.int32.itemsize + layout.dtype.itemsize)
        return torch.from_numpy(scratch_array(layout.n_rows, dtype=_KINDS[dtype], of=everything))

    def _dtype(self, name: str) -> torch.dtype:
        return {"distances": self._layout.dtype, "trimmed": torch.bool}.get(name, torch.int32)


def _filled(column: Tensor, value: int) -> Tensor:
    """On the CPU by NumPy: torch would start its own threads, and end the process if it cannot."""
    if column.device.type != "cpu":
        return column.fill_(value)
    column.numpy().fill(value)
    return column


def _copied(column: Tensor, source: Tensor) -> Tensor:
    if column.device.type != "cpu":
        return column.copy_(source)
    np.copyto(column.numpy(), source.numpy())
    return column
