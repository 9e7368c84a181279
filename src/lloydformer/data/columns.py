"""The choice of columns: by the user's options, and by what the columns hold."""

from collections import deque
from collections.abc import Sequence

from lloydformer.data.conversion import Conversion, Feature, to_words
from lloydformer.data.table import Table

# The most values of a column that become columns of their own.
_CATEGORIES = 100
# Rows that tell numbers from words; the others are checked as they are read.
_SURVEYED = 1000


def choose_columns(table: Table) -> tuple[Conversion, list[str]]:
    """Choose the columns by the options of a table; returns notes about those left out.

    Raises `ValueError` for columns that are not there, and if none is left.
    """
    wanted, notes = _wanted_columns(table)
    coded = table.find(table.options.one_hot)
    if table.options.numeric_only:
        survey = table.survey(_SURVEYED)
        likely = [i for i in wanted if survey[i].numeric]
        if any(c.numbers + c.n_words + c.missing >= _SURVEYED for c in survey):
            try:  # reading the rest as numbers is much faster than a survey of all rows
                deque(table.batches(likely, []), maxlen=0)
            except ValueError:
                survey = table.survey()
        others = [i for i in wanted if not survey[i].numeric and i not in coded]
        if others:
            listed = ", ".join(table.label(i) + survey[i].explain() for i in others)
            notes.append(f"not numeric and left out: {listed}")
        wanted = [i for i in wanted if i not in others]
    _check_choice(table, wanted)
    found = {i: set[str]() for i in coded}
    for batch in table.batches([], coded) if coded else ():
        for words, texts in zip(found.values(), batch.texts, strict=True):
            words.update(word for word in to_words(texts) if word is not None)
    for i, words in found.items():
        if not 0 < len(words) <= _CATEGORIES:
            label, options = table.label(i), table.options
            raise ValueError(
                f"{table.name}: column {label} has {len(words):,} different values, and "
                f"{options.spell('one_hot')} takes 1 to {_CATEGORIES}; use "
                f"{options.spell('exclude', (label,))}"
            )
    # In alphabetical order: the order of rows must not change the columns of a model.
    categories = {i: tuple(sorted(words)) for i, words in found.items()}
    features = [Feature(table.label(i), categories.get(i)) for i in wanted]
    return Conversion(tuple(features), table.names is not None), notes


def choose_by_name(table: Table) -> list[int]:
    """Choose columns without a look at the rows; raises `ValueError` as `choose_columns` does."""
    wanted, _ = _wanted_columns(table)
    _check_choice(table, wanted)
    return wanted


def _wanted_columns(table: Table) -> tuple[list[int], list[str]]:
    """Return the columns that the options leave, in the order of the options, and notes."""
    options = table.options
    left_out = set(table.find(options.exclude))
    if options.id_column is not None:
        left_out |= set(table.find([options.id_column]))
    if options.columns:
        chosen = table.find(options.columns)
        chosen += [i for i in table.find(options.one_hot) if i not in chosen]
        if both := [table.label(i) for i in chosen if i in left_out]:
            raise ValueError(f"{table.name}: column {both[0]} is chosen and left out; name it once")
        return chosen, []
    index = table.index_columns
    kept = [i for i in range(table.width) if i not in left_out and table.show(i) not in index]
    # Spreadsheets write columns without a name and without a value: leave them out.
    unnamed = [i for i in kept if table.names is not None and not table.names[i]]
    survey = table.survey() if unnamed else []
    blank = [i for i in unnamed if survey[i].empty]
    if not blank:
        return kept, []
    numbers = ", ".join(str(i + 1) for i in blank)
    return [i for i in kept if i not in blank], [
        f"column{'s' * (len(blank) > 1)} {numbers} without a name and without values left out"
    ]


def _check_choice(table: Table, wanted: Sequence[int]) -> None:
    """Raise `ValueError` for a column without a name, one that is there twice, and for none."""
    names = table.names or ("",)
    if names[0] and not any(names[1:]) and len(names) > 1:
        raise ValueError(
            f"{table.name}: only one column has a name ({names[0]}); is this line a title? "
            "Remove it"
        )
    for i in wanted:
        if table.names is not None and not table.names[i]:
            repair = table.options.spell("exclude", (str(i + 1),))
            raise ValueError(
                f"{table.name}: column {i + 1} has no name (are these row numbers?); name it, or "
                f"choose the other columns with {repair}"
            )
    table.refuse_duplicates(wanted)
    if not wanted:
        raise ValueError(f"{table.name}: no column is left; choose columns of numbers")
