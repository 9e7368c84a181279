"""A table as batches of rows: some columns as numbers, others as texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

_DISTINCT = 21
"""Different words of a column that are remembered."""


@dataclass(frozen=True)
class TableBatch:
    """Rows of a table: numbers (m, a) with NaN where a value is missing, and columns of texts."""

    numbers: np.ndarray
    texts: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.texts[0]) if self.texts else len(self.numbers)


@dataclass
class ColumnSurvey:
    """How many values of a column are numbers, words and missing.

    `place` and `word`: the first word, and where it is; `words`: some different words.
    """

    numbers: int = 0
    n_words: int = 0
    missing: int = 0
    place: str = ""
    word: str = ""
    words: set[str] = field(default_factory=set)

    @property
    def numeric(self) -> bool:
        """Whether there is no word, and a number."""
        return self.n_words == 0 and self.numbers > 0

    @property
    def empty(self) -> bool:
        """Whether all values are missing."""
        return self.n_words == self.numbers == 0

    @property
    def mostly_numbers(self) -> bool:
        return self.numbers >= self.n_words > 0

    @property
    def categories(self) -> bool:
        """Whether the same few words, and no numbers in another writing, appear again and again."""
        few = len(self.words) < min(_DISTINCT, max(2, self.n_words))
        return few and not any(word[:1].isdigit() for word in self.words)

    def add_word(self, word: str, place: str) -> None:
        """Count a word."""
        self.n_words += 1
        if not self.place:
            self.place, self.word = place, word
        if len(self.words) < _DISTINCT:
            self.words.add(word)


@runtime_checkable
class TableColumns(Protocol):
    """The columns of a table."""

    @property
    def name(self) -> str:
        """The file, for messages."""
        ...

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, if they have some."""
        ...

    @property
    def width(self) -> int:
        """Number of columns."""
        ...

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """What the columns hold, in the first rows or in all."""
        ...


@runtime_checkable
class TableSource(TableColumns, Protocol):
    """A table that can be read again and again."""

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        """Read columns by index; raises ValueError if one of `numbers` holds a word."""
        ...

    def place(self, row: int) -> str:
        """Where a row is, counted from 0, in words: line 7 of a text, row 6 of an array."""
        ...
