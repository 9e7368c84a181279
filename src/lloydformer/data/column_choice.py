"""Choice of the columns of a table and of their notations, by options and by their values."""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from lloydformer.data.conversion import Conversion, Feature, to_words
from lloydformer.data.notation_choice import (
    ChosenNotation,
    adapt_notation,
    choose_notations,
    refuse_doubtful_numbers,
    search_columns,
)
from lloydformer.data.table import Table

# The most values of a column that become columns of their own. A column with more is likely one of
# names or free text, and would outweigh all others in a distance.
_CATEGORIES = 100
# Rows that tell numbers from words; the others are checked as they are read, which is much faster
# than a survey in Python.
SURVEYED = 1000


def choose_columns(table: Table) -> tuple[Conversion, list[str], dict[str, str]]:
    """Choose the columns by the options of a table.

    Returns notes about those left out, and what is done with those in other notations.

    Raises `ValueError` for columns that are not there, and if none is left.
    """
    wanted, notes = _wanted_columns(table)
    coded = table.find(table.options.one_hot)
    table.refuse_duplicates(coded, table.options.one_hot)
    notations: dict[int, ChosenNotation] = {}
    if table.options.numeric_only:
        survey = table.survey(SURVEYED)
        likely = [i for i in wanted if survey[i].is_numeric]
        if any(c.numbers + c.n_words + c.missing >= SURVEYED for c in survey):
            try:  # reading the rest as numbers is much faster than a survey of all rows
                deque(table.batches(likely, []), maxlen=0)
            except ValueError:
                survey = table.survey()
        others = [i for i in wanted if not survey[i].is_numeric and i not in coded]
        if not table.options.on_workers:
            notations = choose_notations(table, others, survey, numeric_only=True)
        others = [i for i in others if i not in notations or notations[i].notation is None]
        left_out = set(others)
        wanted = [i for i in wanted if i not in left_out]
        plain = [i for i in wanted if i not in notations and i not in coded]
        refuse_doubtful_numbers(table, plain, list(notations.values()))
        if others:
            listed = ", ".join(table.label(i) + survey[i].explain() for i in others)
            notes.append(f"not numeric and left out: {listed}")
    _check_choice(table, wanted)
    found = {i: set[str]() for i in coded}
    for batch in table.batches([], coded) if coded else ():
        for words, texts in zip(found.values(), batch.texts, strict=True):
            every = to_words(texts, table.options.missing_values)
            words.update(word for word in every if word is not None)
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
    # The second of two columns would be 1 less the first, and count it twice.
    features = [
        Feature(
            table.label(i),
            categories.get(i),
            is_single=len(categories.get(i, ())) == 2,
            notation=notations[i].notation if i in notations else None,
        )
        for i in wanted
    ]
    options = table.options
    converted = {table.label(i): notations[i].words for i in wanted if i in notations}
    conversion = Conversion(
        tuple(features),
        table.names is not None,
        na_values=options.na_values,
        keeps_sentinels=options.sentinels == "keep",
        decimal=options.decimal_point,
        comment=options.comment,
    )
    return conversion, notes, converted


def add_notations(
    table: Table, conversion: Conversion, n_rows: int | None, known: bool
) -> tuple[Conversion, dict[str, str]]:
    """Find the notations of columns that are not plain numbers; returns what is done with them.

    Parameters
    ----------
    table : Table
        The table.
    conversion : Conversion
        Its columns.
    n_rows : int or None
        Rows in which such columns are looked for; None for all.
    known : bool
        The conversion is that of a model.
    """
    survey = table.survey(n_rows)
    places = table.find([f.column for f in conversion.features])
    features = dict(zip(places, conversion.features, strict=True))
    numbers = [i for i, f in features.items() if f.categories is None]
    columns = [i for i in numbers if features[i].notation is None and survey[i].n_words]
    if not columns and n_rows is not None:
        return add_notations(table, conversion, None, known)
    if known:
        searches = search_columns(table, columns)
        found = {}
        for i, search in searches.items():
            if not search.n_readings:
                table.refuse_words(
                    [j for j in numbers if features[j].notation is None], table.survey()
                )
            found[i] = adapt_notation(table, i, search, None)
    else:
        found = choose_notations(table, columns, survey, wanted=numbers)
    plain = [i for i in numbers if i not in found and features[i].notation is None]
    refuse_doubtful_numbers(table, plain, list(found.values()))
    kept = [
        replace(f, notation=found[i].notation) if i in found else f
        for i, f in features.items()
        if i not in found or found[i].notation is not None
    ]
    if not kept:
        raise ValueError(f"{table.name}: no column is left; choose columns of numbers")
    words = {table.label(i): chosen.words for i, chosen in found.items()}
    return replace(conversion, features=tuple(kept)), words


def adapt_notations(table: Table, conversion: Conversion) -> tuple[Conversion, dict[str, str]]:
    """Return the conversion of a model for new rows, which may be written in another way."""
    if not any(feature.notation for feature in conversion.features):
        return conversion, {}
    conversion.find_columns(table)  # raises an error with all columns that are missing
    places = table.find([f.column for f in conversion.features])
    stored = [(i, f) for i, f in zip(places, conversion.features, strict=True) if f.notation]
    searches = search_columns(table, [i for i, _ in stored])
    found = {i: adapt_notation(table, i, searches[i], f.notation) for i, f in stored}
    pairs = list(zip(places, conversion.features, strict=True))
    plain = [i for i, f in pairs if not f.is_text]
    refuse_doubtful_numbers(table, plain, list(found.values()))
    features = (replace(f, notation=found[i].notation) if i in found else f for i, f in pairs)
    words = {table.label(i): chosen.words for i, chosen in found.items()}
    return replace(conversion, features=tuple(features)), words


def choose_by_name(table: Table) -> list[int]:
    """Choose columns without a look at the rows; raises `ValueError` as `choose_columns` does."""
    wanted, _ = _wanted_columns(table)
    _check_choice(table, wanted)
    return wanted


def _wanted_columns(table: Table) -> tuple[list[int], list[str]]:
    """Return the columns that the options leave, in the order of the options, and notes."""
    options = table.options
    table.refuse_duplicates((), options.exclude)
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
    blank = [i for i in unnamed if survey[i].is_empty]
    if not blank:
        return kept, []
    numbers = ", ".join(str(i + 1) for i in blank)
    return [i for i in kept if i not in blank], [
        f"column{'s' * (len(blank) > 1)} {numbers} without a name and without values left out"
    ]


def _check_choice(table: Table, wanted: Sequence[int]) -> None:
    """Raise `ValueError` for a column without a name, one that is there twice, and for none."""
    names, options = table.names or ("",), table.options
    if names[0] and not any(names[1:]) and len(names) > 1 and not options.columns:
        raise ValueError(
            f"{table.name}: only one column has a name ({names[0]}); if this line is a title, "
            "leave it out"
        )
    by_number = set(table.find(options.columns)) if options.columns else set()
    for i in wanted:
        if table.names is not None and not table.names[i] and i not in by_number:
            repair = table.options.spell("exclude", (str(i + 1),))
            raise ValueError(
                f"{table.name}: column {i + 1} has no name (are these row numbers?); name it, or "
                f"choose it by its number, or leave it out with {repair}"
            )
    table.refuse_duplicates(wanted, options.columns or ())
    if not wanted:
        raise ValueError(f"{table.name}: no column is left; choose columns of numbers")
