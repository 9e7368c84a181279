"""Tables in text: records of fields, read without pyarrow."""

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from lloydformer.data.columns import ColumnFinder
from lloydformer.data.csv_format import may_be_thousands
from lloydformer.data.csv_values import MISSING_VALUES, between_thousands, is_number, number
from lloydformer.data.table_header import TableHeader
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import ColumnSurvey, TableBatch, TableColumns

_ROWS = 1 << 14
"""Rows of a batch."""
_SURVEYED = 200_000
"""Rows in which all columns of words are looked for."""


class RecordSource:
    """A table whose `records` are lists of texts, the header among them.

    Parameters
    ----------
    name : str
        The file, for messages.
    header : TableHeader
        Its header.
    decimal : str
        The decimal point.
    options : TableOptions
        What the user said.
    """

    def __init__(self, name: str, header: TableHeader, decimal: str, options: TableOptions) -> None:
        self.name, self.header, self.decimal, self.options = name, header, decimal, options
        self.names, self.width = header.names, len(header.fields)

    def records(self) -> Iterator[tuple[int, int, list[str]]]:
        """Each record that is not blank: its first line, its last line, its fields."""
        raise NotImplementedError

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Each row with its line; raises ValueError for one with another number of values."""
        for first, last, fields in self.records():
            if self.names is not None and last <= self.header.lines:
                continue
            if len(fields) != self.width:
                raise ValueError(
                    f"{self.name}: line {first}: found {len(fields)} values for {self.width} "
                    f"columns; give every row the same number of columns{self._title(first)}"
                )
            yield first, fields

    def _title(self, line: int) -> str:
        """What to do if the first line is a title, not a header."""
        titled = self.width == 1 and line == self.header.lines + 1 > 1
        return f" (is line {self.header.lines} a title? Remove it)" if titled else ""

    def batches(self, numbers: Sequence[int], texts: Sequence[int]) -> Iterator[TableBatch]:
        return self.plain_batches(numbers, texts)

    def plain_batches(
        self, numbers: Sequence[int], texts: Sequence[int], skip: int = 0
    ) -> Iterator[TableBatch]:
        """Read columns in Python; `skip`: rows that are left out at the beginning."""
        rows = islice(self.rows(), skip, None)
        while part := list(islice(rows, _ROWS)):
            columns = [self._numbers(part, i, numbers) for i in numbers]
            points = np.column_stack(columns) if columns else np.empty((len(part), 0))
            yield TableBatch(points, [self._texts(part, i) for i in texts])

    def _numbers(
        self, part: list[tuple[int, list[str]]], i: int, wanted: Sequence[int]
    ) -> np.ndarray:
        try:
            return np.array([number(fields[i], self.decimal) for _, fields in part])
        except ValueError:
            self.refuse_words(wanted)
            raise

    def _texts(self, part: list[tuple[int, list[str]]], i: int) -> np.ndarray:
        found = np.empty(len(part), dtype=object)
        for k, (line, fields) in enumerate(part):
            if any("\udc80" <= sign <= "\udcff" for sign in fields[i]):
                raise ValueError(
                    f"{self.name}: line {line}: is not text in UTF-8; pass "
                    f"{self.options.spelled('encoding', 'cp1252')}, or save it as UTF-8"
                )
            found[k] = fields[i]
        return found

    def survey(self, n_rows: int | None = None) -> list[ColumnSurvey]:
        found = [ColumnSurvey() for _ in range(self.width)]
        for line, fields in islice(self.rows(), n_rows):
            for column, text in zip(found, fields, strict=True):
                if is_number(text, self.decimal):
                    column.numbers += 1
                elif text.strip() in MISSING_VALUES:
                    column.missing += 1
                else:
                    column.add_word(text.strip(), f"line {line}")
        return found

    def place(self, row: int) -> str:
        line, _ = next(islice(self.rows(), row, None))
        return f"line {line}"

    def refuse_words(self, wanted: Sequence[int]) -> None:
        """Raise ValueError if one of the wanted columns holds words.

        If the first rows have some, others are not looked at.
        """
        for n_rows in (_SURVEYED, None):
            refuse_words(self, self.survey(n_rows), wanted, self.options)


def refuse_words(
    source: TableColumns, found: Sequence[ColumnSurvey], wanted: Sequence[int],
    options: TableOptions,
) -> None:  # fmt: skip
    """Raise ValueError with all columns that hold words, and the options that help."""
    finder = ColumnFinder(source.name, source.names, source.width)
    bad = [i for i in wanted if found[i].n_words]
    if not bad:
        return
    good = [finder.label(i) for i in wanted if found[i].numeric]
    slips = [i for i in bad if found[i].mostly_numbers]
    if slips == bad:
        first = found[bad[0]]
        also = f" ({', '.join(finder.label(i) for i in bad[1:])} too)" if len(bad) > 1 else ""
        raise ValueError(
            f"{source.name}: {first.place}, column {finder.shown(bad[0])}: found {first.word!r}"
            f"{also}; correct it, or {_choice(good, options)}{_comma(first, options)}"
        )
    names = [finder.label(i) for i in bad]
    few = [finder.label(i) for i in bad if found[i].categories and i not in slips]
    first = found[bad[0]]
    raise ValueError(
        f"{source.name}: {_listed(names)} {'are' if len(names) > 1 else 'is'} not numeric "
        f"({first.place}: {first.word[:40]!r}); {_remedies(good, few, options)}"
        f"{_comma(first, options)}{_thousands([(finder.label(i), found[i]) for i in bad])}"
    )


def _thousands(bad: Sequence[tuple[str, ColumnSurvey]]) -> str:
    """Numbers such as 1.234,50 are not read, as programs that read them are few."""
    for name, found in bad:
        mark = between_thousands(found.word)
        if mark:
            return f"; {name}: remove the {mark} between thousands, as in {found.word!r}"
    return ""


def _choice(good: Sequence[str], options: TableOptions) -> str:
    """For a column of numbers with a few words."""
    if options.shell and good:
        return f"choose columns of numbers: {_columns(good, options)}"
    return "choose columns of numbers"


def _remedies(good: Sequence[str], few: Sequence[str], options: TableOptions) -> str:
    ways = [_columns(good, options)] if good else []
    if not options.on_workers:
        ways += [options.spelled("numeric_only", True)] if good else []
        ways += [options.spelled("one_hot", tuple(few))] if few else []
    if not ways:
        return "no column is numeric; correct the values"
    *most, last = ways
    return f"use {', '.join(most)} or {last}" if most else f"use {last}"


def _columns(good: Sequence[str], options: TableOptions) -> str:
    if len(good) > 12:
        return options.spelled("exclude")
    return options.spelled("columns", tuple(good))


def _comma(found: ColumnSurvey, options: TableOptions) -> str:
    if not may_be_thousands(found.word):
        return ""
    return (f"; if {found.word} is {found.word.replace(',', '.')}, pass "
            f"{options.spelled('decimal', ',')}; if it is {found.word.replace(',', '')}, remove "
            "the commas")  # fmt: skip


def _listed(names: Sequence[str], most: int = 12) -> str:
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
