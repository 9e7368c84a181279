"""pandas data frames as tables."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lloydformer.data.record_source import refuse_words
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import ColumnSurvey, TableBatch

_FIRST = 1000
"""Rows whose words are looked at."""


class FrameSource:
    """A frame: float32 if every chosen column is, else float64; with names if all are strings.

    Parameters
    ----------
    frame : pandas.DataFrame
        The frame.
    options : TableOptions
        What the user said.
    """

    def __init__(self, frame: Any, options: TableOptions) -> None:
        named = all(isinstance(name, str) for name in frame.columns)
        self.name, self.frame, self.options = "source", frame, options
        self.names = tuple(frame.columns) if named else None
        self.width = frame.shape[1]

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        if not all(self.frame.dtypes.iloc[i].kind in "iubf" for i in numbers):
            refuse_words(self, self.survey(), numbers, self.options)
        chosen = self.frame.iloc[:, list(numbers)]
        small = len(numbers) and all(kind == np.float32 for kind in chosen.dtypes)
        points = chosen.to_numpy(dtype=np.float32 if small else np.float64, na_value=np.nan)
        words = [self.frame.iloc[:, i] for i in texts]
        yield TableBatch(np.ascontiguousarray(points), [
            column.astype(object).where(column.notna(), None).to_numpy() for column in words
        ])  # fmt: skip

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """By their types; words are those of the first rows."""
        found = [ColumnSurvey(numbers=int(kind.kind in "iubf")) for kind in self.frame.dtypes]
        for i, column in enumerate(found):
            if not column.numbers:
                for row, value in enumerate(self.frame.iloc[:_FIRST, i], start=1):
                    column.add_word(str(value), f"row {row}")
                column.n_words = max(column.n_words, 1)
        return found

    def place(self, row: int) -> str:
        return f"row {row + 1}"
