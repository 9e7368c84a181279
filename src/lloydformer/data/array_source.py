"""Arrays, and tables of numbers in memory, as tables."""

from collections.abc import Iterator, Sequence

import numpy as np

from lloydformer.data.table_source import ColumnSurvey, TableBatch

_ROWS = 1 << 16
"""Rows of a batch; bounds temporary memory."""


class ArraySource:
    """An array of numbers (n, d), which may be mapped from a file.

    Parameters
    ----------
    name : str
        The file, for messages.
    points : ndarray of shape (n, d)
        The numbers.
    names : tuple of str, optional
        Names of the columns.
    """

    def __init__(self, name: str, points: np.ndarray, names: tuple[str, ...] | None = None) -> None:
        if points.ndim != 2 or points.dtype.kind not in "iubf":
            raise ValueError(f"{name}: found dtype {points.dtype} and shape {points.shape}; "
                             "points are rows of numbers (n, d)")  # fmt: skip
        self.name, self.points, self.names = name, points, names
        self.width = points.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """The precision of points: that of the array, or float64 for integers."""
        return self.points.dtype if self.points.dtype.itemsize in (4, 8) and (
            self.points.dtype.kind == "f") else np.dtype(np.float64)  # fmt: skip

    def whole(self, numbers: Sequence[int]) -> np.ndarray | None:
        """The array itself, if these are all its columns: a mapped file stays mapped."""
        all_columns = list(numbers) == list(range(self.width))
        return self.points if all_columns and self.points.dtype == self.dtype else None

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        chosen, written = list(numbers), list(texts)
        for start in range(0, len(self.points), _ROWS):
            part = self.points[start : start + _ROWS]
            words = [np.array([f"{v:.15g}" for v in part[:, i]], dtype=object) for i in written]
            yield TableBatch(part[:, chosen].astype(self.dtype), words)

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        return [ColumnSurvey(numbers=len(self.points)) for _ in range(self.width)]

    def place(self, row: int) -> str:
        return f"row {row + 1}"
