"""Which columns of a table are used, by what the user said and by what the columns hold."""

from collections import Counter, deque
from collections.abc import Sequence

from lloydformer.data.columns import ColumnFinder, refuse_duplicates
from lloydformer.data.conversion import Conversion, Feature, words_of
from lloydformer.data.csv_values import between_thousands
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import ColumnSurvey, TableColumns, TableSource

_CATEGORIES = 100
"""The most values of a column that become columns of their own."""
_SURVEYED = 1000
"""Rows that tell numbers from words; the others are checked as they are read."""


def choose(source: TableSource, options: TableOptions) -> tuple[Conversion, list[str]]:
    """Choose the columns; returns notes about those that are left out.

    Raises ValueError for columns that are not there, and if none is left.
    """
    finder = ColumnFinder(source.name, source.names, source.width)
    wanted, notes = _wanted(source, finder, options)
    coded = list(finder.indices(options.one_hot)) if options.one_hot else []
    if options.numeric_only:
        wanted, more = _numeric(source, finder, wanted, coded)
        notes += more
    labels = _checked(source, finder, wanted, options)
    values = _categories(source, finder, coded, options)
    features = [Feature(labels[i], values.get(i)) for i in wanted]
    return Conversion(tuple(features), source.names is not None), notes


def choose_by_name(source: TableColumns, options: TableOptions) -> list[int]:
    """Choose columns without a look at the rows; raises ValueError as `choose` does."""
    finder = ColumnFinder(source.name, source.names, source.width)
    wanted, _ = _wanted(source, finder, options)
    _checked(source, finder, wanted, options)
    return wanted


def _checked(
    source: TableColumns, finder: ColumnFinder, wanted: Sequence[int], options: TableOptions
) -> list[str]:
    """What a user calls each column of the table; raises ValueError for a wrong choice."""
    _refuse_unnamed(source, wanted, options)
    labels = [finder.label(i) for i in range(source.width)]
    refuse_duplicates(source.name, labels, [labels[i] for i in wanted])
    if not wanted:
        raise ValueError(f"{source.name}: no column is left; choose columns of numbers")
    return labels


def _wanted(
    source: TableColumns, finder: ColumnFinder, options: TableOptions
) -> tuple[list[int], list[str]]:
    left_out = set(finder.indices(options.exclude)) if options.exclude else set()
    if options.id_column is not None:
        left_out |= set(finder.indices([options.id_column]))
    if options.columns:
        asked = list(finder.indices(options.columns))
        coded = finder.indices(options.one_hot) if options.one_hot else []
        asked += [i for i in coded if i not in asked]
        if both := [finder.label(i) for i in asked if i in left_out]:
            raise ValueError(
                f"{source.name}: column {both[0]} is chosen and left out; name it once"
            )
        return asked, []
    rows: set[str] = getattr(source, "row_numbers", set())
    kept = [i for i in range(source.width) if i not in left_out and finder.shown(i) not in rows]
    return _without_blank(source, kept)


def _without_blank(source: TableColumns, kept: list[int]) -> tuple[list[int], list[str]]:
    """Leave out columns without a name and without a value, which spreadsheets write."""
    unnamed = [i for i in kept if source.names is not None and not source.names[i]]
    if not unnamed:
        return kept, []
    found = source.survey()
    blank = [i for i in unnamed if found[i].empty]
    if not blank:
        return kept, []
    numbers = ", ".join(str(i + 1) for i in blank)
    return [i for i in kept if i not in blank], [
        f"column{'s' * (len(blank) > 1)} {numbers} without a name and without values left out"
    ]


def _numeric(
    source: TableSource, finder: ColumnFinder, wanted: Sequence[int], coded: Sequence[int]
) -> tuple[list[int], list[str]]:
    """Leave out columns with a word or without a number."""
    found = source.survey(_SURVEYED)
    likely = [i for i in wanted if found[i].numeric]
    if not all(c.numbers + c.n_words + c.missing < _SURVEYED for c in found):
        try:  # much faster than to survey all rows
            deque(source.batches(likely, []), maxlen=0)
        except ValueError:
            found = source.survey()
    kept = [i for i in wanted if found[i].numeric or i in coded]
    out = [finder.label(i) + _why(found[i]) for i in wanted if i not in kept]
    return kept, [f"not numeric and left out: {', '.join(out)}"] if out else []


def _why(found: ColumnSurvey) -> str:
    """Tell columns that a few words have spoiled."""
    if found.empty:
        return " (empty)"
    mark = between_thousands(found.word)
    if mark:
        return f" (remove the {mark} between thousands, as in {found.word!r})"
    share = found.n_words / (found.n_words + found.numbers)
    return f" ({found.n_words} words, as {found.word!r} in {found.place})" if share < 0.5 else ""


def _refuse_unnamed(source: TableColumns, wanted: Sequence[int], options: TableOptions) -> None:
    """A column without a name is usually the row numbers that pandas writes."""
    names = source.names or ("",)
    if names[0] and not any(names[1:]) and len(names) > 1:
        raise ValueError(f"{source.name}: only one column has a name ({names[0]}); is this "
                         "line a title? Remove it")  # fmt: skip
    for i in wanted:
        if source.names is not None and not source.names[i]:
            raise ValueError(
                f"{source.name}: column {i + 1} has no name (are these row numbers?); name it, or "
                f"choose the other columns with {options.spelled('exclude', (str(i + 1),))}"
            )


def _categories(
    source: TableSource, finder: ColumnFinder, coded: Sequence[int], options: TableOptions
) -> dict[int, tuple[str, ...]]:
    """The values of columns that become columns of 0 and 1, in the order of the alphabet."""
    if not coded:
        return {}
    counts: list[Counter[str]] = [Counter() for _ in coded]
    for batch in source.batches([], list(coded)):
        for counter, texts in zip(counts, batch.texts, strict=True):
            counter.update(word for word in words_of(texts) if word is not None)
    for i, counter in zip(coded, counts, strict=True):
        if not 0 < len(counter) <= _CATEGORIES:
            label = finder.label(i)
            raise ValueError(
                f"{source.name}: column {label} has {len(counter):,} different values, and "
                f"{options.spelled('one_hot')} takes 1 to {_CATEGORIES}; use "
                f"{options.spelled('exclude', (label,))}"
            )
    return {i: tuple(sorted(counter)) for i, counter in zip(coded, counts, strict=True)}
