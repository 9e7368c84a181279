"""Tables: rows with named or numbered columns, read in batches as numbers and as texts."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lloydformer.data.table_options import TableOptions

Names = Sequence[str] | None
# Different words of a column that are remembered. A column with 20 or fewer may hold categories.
_DISTINCT = 21
# Names of columns in an error; chosen by hand, so that it stays a line or two.
_LISTED = 12
# 1,234: a number of thousands, or one with a decimal comma.
_COMMA_THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
# 1.234,50 or 1,234.50: marks between thousands, and a decimal point after them.
_GROUPED = re.compile(
    r"[+-]?[0-9]{1,3}(?:(\.)[0-9]{3}(?:\.[0-9]{3})*,|(,)[0-9]{3}(?:,[0-9]{3})*\.)[0-9]+"
)


class NotNumericError(ValueError):
    """Columns that are to be read as numbers hold something else, perhaps in another notation."""


@dataclass(frozen=True)
class TableBatch:
    """Rows of a table: numbers (m, a) with NaN where a value is missing, and columns of texts."""

    numbers: np.ndarray
    texts: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.texts[0]) if self.texts else len(self.numbers)


@dataclass
class ColumnSurvey:
    """Counts of the numbers, words and missing values of a column.

    Attributes
    ----------
    numbers, n_words, missing : int
        The counts.
    word, place : str
        The first word, and its line or row.
    words : set of str
        Some of the different words.
    """

    numbers: int = 0
    n_words: int = 0
    missing: int = 0
    place: str = ""
    word: str = ""
    words: set[str] = field(default_factory=set)

    @property
    def is_numeric(self) -> bool:
        return self.n_words == 0 and self.numbers > 0

    @property
    def is_empty(self) -> bool:
        """True if all values are missing."""
        return self.n_words == self.numbers == 0

    @property
    def is_mostly_numbers(self) -> bool:
        return self.numbers >= self.n_words > 0

    @property
    def is_categorical(self) -> bool:
        """True for few words that appear repeatedly, and are not numbers in another notation.

        A few words among more numbers are slips.
        """
        few = len(self.words) < min(_DISTINCT, max(2, self.n_words))
        are_numbers = self.is_mostly_numbers or any(word[:1].isdigit() for word in self.words)
        return few and not are_numbers

    @property
    def marks_between_thousands(self) -> str:
        """'points' or 'commas' if the first word is a number such as 1.234,50, else ''.

        Such numbers are refused: a reader that guessed would be wrong by a factor of 1000.

        >>> ColumnSurvey(word="1.234,50").marks_between_thousands
        'points'
        """
        match = _GROUPED.fullmatch(self.word.strip())
        return "" if match is None else "points" if match[1] else "commas"

    def explain(self) -> str:
        """Return why the column is not numeric, unless most of its values are words."""
        if self.is_empty:
            return " (empty)"
        if marks := self.marks_between_thousands:
            return f" (remove the {marks} between thousands, as in {self.word!r})"
        if self.n_words < self.numbers:
            return f" ({self.n_words} words, as {self.word!r} in {self.place})"
        return ""

    def add_word(self, word: str, place: str) -> None:
        """Count a word."""
        self.n_words += 1
        if not self.place:
            self.place, self.word = place, word
        if len(self.words) < _DISTINCT:
            self.words.add(word)


class Table:
    """A table that can be read repeatedly.

    Parameters
    ----------
    name : str
        The file, for messages.
    names : sequence of str or None
        Names of the columns; without, they are numbered from 1.
    width : int
        Number of columns.
    options : TableOptions
        Options of the user, for messages.
    """

    def __init__(self, name: str, names: Names, width: int, options: TableOptions) -> None:
        self.name, self.width, self.options = name, width, options
        # Columns whose name is there more than once, by that name.
        self.repeated = dict[str, list[int]]()
        self.names = None if names is None else self._make_unique(names)
        self.notes: list[str] = []  # what was detected, for the user
        # Of columns without a name the first one counts; a search in the tuple would make choosing
        # n of n columns quadratic.
        self._index = {label: i for i, label in reversed(list(enumerate(self.names or ())))}

    def _make_unique(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return names of which each is there once, as pandas does: age, age.1."""
        counts, found = Counter(names), dict[str, int]()
        if len(counts) == len(names):
            return tuple(names)
        unique = []
        for i, name in enumerate(names):
            own, number = name, 0
            if name and counts[name] > 1:
                self.repeated.setdefault(name, []).append(i)
                number = found.get(name, 0)
                while number and (own := f"{name}.{number}") in counts:
                    number += 1
                found[name] = number + 1
            unique.append(own)
        return tuple(unique)

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        """Read columns by index; raises `ValueError` if one of `numbers` holds a word."""
        raise NotImplementedError

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        """Count what the columns hold, in the first rows or in all."""
        raise NotImplementedError

    @property
    def index_columns(self) -> frozenset[str]:
        """Columns that are used only if they are chosen: the index of a pandas data frame."""
        return frozenset()

    def locate(self, row: int) -> str:
        """Return the place of a row, counted from 0, in words."""
        return f"row {row + 1}"

    def label(self, index: int) -> str:
        """Return the name of a column, or its number if it has none, as a user writes it."""
        return (self.names[index] if self.names else "") or str(index + 1)

    def show(self, index: int) -> str:
        """Return a column for messages."""
        return self.names[index] if self.names else f"number {index + 1}"

    def find(self, columns: Sequence[str]) -> list[int]:
        """Return the index of each column; raises `ValueError` if there is no such column.

        A column is found by its name, or else by its number, counted from 1.
        """
        indices = []
        for column in columns:
            index = self._index.get(column, -1)
            if index < 0 and re.fullmatch(r"\d{1,18}", column, re.ASCII):
                index = int(column) - 1 if int(column) <= self.width else -1
            if index < 0:
                known = list_names(self.names) if self.names else f"1 to {self.width}"
                commas = any("," in name for name in self.names or ())
                more = "; put names with commas between double quotes" if commas else ""
                raise ValueError(f"{self.name}: columns: found {column!r}; there are {known}{more}")
            indices.append(index)
        return indices

    def refuse_duplicates(self, wanted: Sequence[int], chosen: Sequence[str] = ()) -> None:
        """Raise `ValueError` if several wanted columns share a name, or a column is wanted twice.

        `chosen`: the columns as the user wrote them; those chosen by number are certain.
        """
        if chosen:
            doubtful = [name for name in chosen if name in self.repeated]
        else:
            present = set(wanted)
            doubtful = [n for n, own in self.repeated.items() if len(present.intersection(own)) > 1]
        if doubtful:
            numbers, spell = [str(i + 1) for i in self.repeated[doubtful[0]]], self.options.spell
            raise ValueError(
                f"{self.name}: column {doubtful[0]} appears twice (columns {', '.join(numbers)}); "
                f"give each column its own name, or choose by number, as with "
                f"{spell('exclude', (numbers[-1],))} or {spell('columns', tuple(numbers))}"
            )
        for i, count in Counter(wanted).items():
            if count > 1:
                raise ValueError(
                    f"{self.name}: column {self.label(i)} appears twice; choose it once"
                )

    def refuse_words(
        self, wanted: Sequence[int], found: Sequence[ColumnSurvey], more: str = ""
    ) -> None:
        """Raise `NotNumericError` with all wanted columns that hold words, and options that help.

        `more`: what else is to be decided, at the end of the message.
        """
        bad = [i for i in wanted if found[i].n_words]
        if not bad:
            return
        good = [self.label(i) for i in wanted if found[i].is_numeric]
        few = [self.label(i) for i in bad if found[i].is_categorical]
        names, first, spell = [self.label(i) for i in bad], found[bad[0]], self.options.spell
        choice = spell("columns", tuple(good)) if len(good) <= _LISTED else spell("exclude")
        comma = ""
        if _COMMA_THOUSANDS.fullmatch(first.word):
            comma = (
                f"; if {first.word} is {first.word.replace(',', '.')}, pass {spell('decimal', ',')}"
                f"; if it is {first.word.replace(',', '')}, remove the commas"
            )
        if all(found[i].is_mostly_numbers for i in bad):  # slips among numbers
            others = f" ({', '.join(names[1:])} too)" if len(bad) > 1 else ""
            choice = f": {choice}" if self.options.shell and good else ""
            raise NotNumericError(
                f"{self.name}: {first.place}, column {self.show(bad[0])}: found {first.word!r}"
                f"{others}; correct it, or choose columns of numbers{choice}{comma}{more}"
            )
        ways = [choice] if good else []
        if not self.options.on_workers:
            ways += [spell("numeric_only", True)] if good else []
            ways += [spell("one_hot", tuple(few))] if few else []
        remedy = "no column is numeric; correct the values"
        if ways:
            remedy = f"use {' or '.join(part for part in (', '.join(ways[:-1]), ways[-1]) if part)}"
        thousands = [
            f"; {self.label(i)}: remove the {found[i].marks_between_thousands} between thousands, "
            f"as in {found[i].word!r}"
            for i in bad
            if found[i].marks_between_thousands
        ]
        raise NotNumericError(
            f"{self.name}: {list_names(names, _LISTED)} {'are' if len(bad) > 1 else 'is'} not "
            f"numeric ({first.place}: {first.word[:40]!r}); {remedy}{comma}{''.join(thousands[:1])}"
            f"{more}"
        )


def list_names(names: Sequence[str], most: int = 20) -> str:
    """List names for an error message: the first ones, and how many there are.

    >>> list_names(["a", "b", "c"]), list_names(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b and 1 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def object_array(values: Sequence[Any]) -> np.ndarray:
    """Return values as an array of objects; NumPy alone would make arrays of equal lists."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
