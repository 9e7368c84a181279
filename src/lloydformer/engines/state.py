"""The state of the points of a session: one array for each named column."""

from threading import Lock

import torch
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.data.mapped_files import scratch_array

# `previous` of a point that has no label of an earlier iteration: differs from every label.
_UNKNOWN = torch.iinfo(torch.int32).min
# The dtype of each column (None: that of the data), and its first value (None: not initialised, as
# a fold writes it before it is read).
COLUMNS = {
    "labels": (torch.int32, -1),
    "previous": (torch.int32, _UNKNOWN),
    "second": (torch.int32, None),
    "distances": (None, None),
    "trimmed": (torch.bool, 0),
}
_DTYPES = {
    dtype: torch.empty(0, dtype=dtype).numpy().dtype
    for dtype in (torch.int32, torch.float32, torch.float64, torch.bool)
}


class PointState:
    """Columns of one number per point, created when they are first used.

    Labels, previous labels and distances take 12 to 16 bytes per point. On the CPU large columns
    are mapped from a scratch file.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._columns: dict[str, Tensor] = {}
        self._lock = Lock()
        self._lent = False

    def column(self, name: str) -> Tensor:
        """Return the array (n,) of a column, which may be written."""
        if name not in self._columns:
            with self._lock:  # blocks are mapped by several threads
                if name not in self._columns:
                    column, start = self._allocate(name), COLUMNS[name][1]
                    self._columns[name] = column if start is None else _write(column, start)
        return self._columns[name]

    def get(self, name: str) -> Tensor | None:
        """Return the array of a column; None if nothing has used it."""
        return self._columns.get(name)

    def copy(self, name: str) -> Tensor | None:
        """Return a copy of a column; None if nothing has used it."""
        column = self.get(name)
        return None if column is None else _write(self._allocate(name), column)

    def set_labels(self, labels: Tensor) -> None:
        """Replace the labels by a tensor (n,), int32, which the session owns from then on."""
        self._columns["labels"], self._lent = labels, False

    def lend_labels(self) -> Tensor:
        """Return the labels, as they are now. `reclaim` must be called before the next write."""
        # No copy here: most fits return their labels at the end, and no fold follows.
        self._lent = True
        return self.column("labels")

    def reclaim(self) -> None:
        """Continue on a copy of the labels if they have been lent."""
        if self._lent:
            self._columns["labels"] = _write(self._allocate("labels"), self._columns["labels"])
            self._lent = False

    def forget(self) -> None:
        """Forget the labels of the last iteration."""
        previous = self.get("previous")
        if previous is not None:  # a new column begins this way
            _write(previous, _UNKNOWN)

    def _allocate(self, name: str) -> Tensor:
        layout, dtype = self._layout, COLUMNS[name][0] or self._layout.dtype
        if layout.device.type != "cpu":
            return torch.empty(layout.n_rows, dtype=dtype, device=layout.device)
        # The size of all columns together decides whether they are mapped: a fit uses them at once.
        everything = layout.n_rows * (2 * torch.int32.itemsize + layout.dtype.itemsize)
        return torch.from_numpy(scratch_array(layout.n_rows, dtype=_DTYPES[dtype], of=everything))


def _write(column: Tensor, values: int | Tensor) -> Tensor:
    # On the CPU by NumPy: torch would start its own threads, and end the process if it cannot.
    target = column.numpy() if column.device.type == "cpu" else column
    target[...] = values
    return column
