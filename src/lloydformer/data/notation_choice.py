"""The notation of each column of texts: found from all its values, or asked for.

A column that can be read in one way only is converted, and a note says so. One that can be read in
two ways, as 1,234 or 03/04/2024, is an error that names the option for each of them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from lloydformer.data.notations import Notation, NotationSearch
from lloydformer.data.table import ColumnSurvey, Table, list_names
from lloydformer.data.typed_tables import TypedTable

# Rows of a text that describe columns of words in an error; all of them would take long.
_DESCRIBED = 200_000
# Words of a column, and columns, that a note names.
_NAMED, _LISTED = 3, 6


@dataclass(frozen=True)
class ChosenNotation:
    """The notation of a column, or None if it is left out; and what that means, in words."""

    notation: Notation | None
    words: str


def search_columns(
    table: Table, columns: Sequence[int], survey: Sequence[ColumnSurvey] | None = None
) -> dict[int, NotationSearch]:
    """Read all values of some columns.

    `survey`: some of their words; columns in which these are words already are not read.
    """
    found = {i: NotationSearch() for i in columns}
    for i, search in found.items() if survey is not None else ():
        for word in sorted(survey[i].words) if survey[i].place != "type" else ():  # type: ignore[index]
            search.add(word)
    live = [i for i in columns if found[i].n_readings or not found[i].n_values]
    found |= {i: NotationSearch() for i in live}
    missing = table.options.missing_values
    for batch in table.batches([], live) if live else ():
        for i, texts in zip(live, batch.texts, strict=True):
            # Each text once: most columns repeat them.
            for text, count in Counter(None if t is None else str(t) for t in texts).items():
                word = "" if text is None else text.strip()
                if word not in missing:
                    found[i].add(word, count)
    return found


def choose_notations(
    table: Table,
    columns: Sequence[int],
    survey: Sequence[ColumnSurvey],
    *,
    wanted: Sequence[int] = (),
    numeric_only: bool = False,
) -> dict[int, ChosenNotation]:
    """Choose the notations of columns that hold more than plain numbers.

    Parameters
    ----------
    table : Table
        The table.
    columns : sequence of int
        The columns.
    survey : sequence of ColumnSurvey
        What all columns hold.
    wanted : sequence of int
        All columns of numbers, for messages.
    numeric_only : bool
        Leave out columns of words, and of dates if the options do not say what they become.

    Returns
    -------
    dict of int to ChosenNotation
        The notations; columns that are left out are missing with `numeric_only`.

    Raises
    ------
    ValueError
        If a column holds words, or if it can be read in two ways and the options do not say how.
    """
    searches, options = search_columns(table, columns, survey), table.options
    found, words, undecided, dates = dict[int, ChosenNotation](), [], [], []
    for i, search in searches.items():
        # A type says that these digits are a text: 0012 is the number of something.
        is_code = isinstance(table, TypedTable) and search.leading_zero
        if not search.n_readings or is_code:
            words.append(i)
        elif search.is_dated:
            notation = _choose_dates(search, options.dates, options.date_order)
            if notation is not None or options.dates == "drop":
                found[i] = ChosenNotation(notation, describe_notation(table, search, notation))
            else:
                dates.append(i)
        elif (decimal := _choose_decimal(search, options)) is None:
            undecided.append(i)
        else:
            notation = _number_or_truth(search, decimal)
            found[i] = ChosenNotation(notation, describe_notation(table, search, notation))
    if numeric_only:
        words, dates = [], [i for i in dates if options.dates in ("days", "parts")]
    questions = [
        *_ask_about_numbers(table, undecided, searches, survey),
        *_ask_about_dates(table, dates, searches, survey),
    ]
    if words:
        described, more = table.survey(_DESCRIBED), [f"; {question}" for question in questions]
        for i in found:
            described[i] = ColumnSurvey(numbers=1)
        good = [i for i in wanted if i not in undecided and i not in dates]
        faults = [f"; {table.label(i)}: {searches[i].fault}" for i in words if searches[i].fault]
        repairs = _suggest_lines(table, [described[i] for i in words])
        table.refuse_words(sorted({*good, *words}), described, "".join((*faults, *more, *repairs)))
    if questions:
        raise ValueError(f"{table.name}: {'; '.join(questions)}")
    return {i: found[i] for i in columns if i in found}


def refuse_doubtful_numbers(
    table: Table, columns: Sequence[int], found: Sequence[ChosenNotation]
) -> None:
    """Raise `ValueError` for plain numbers such as 1.234 in a table that has decimal commas.

    They are read with the decimal point of the file, which is not certain any more.
    """
    decimal, options = getattr(table, "decimal", None), table.options
    others = {
        each.notation.decimal
        for each in found
        if each.notation is not None
        and each.notation.kind == "number"
        and ("decimal" in each.words or "thousands" in each.words)
    }
    others.discard("")
    certain = options.decimal_point or options.expected_decimal
    if decimal is None or others <= {decimal} or certain is not None:
        return
    searches = search_columns(table, columns)
    doubtful = [i for i, search in searches.items() if search.n_readings == 2]
    if doubtful:
        asked = _ask_about_numbers(table, doubtful, searches, table.survey(1))
        raise ValueError(f"{table.name}: {asked[0]}")


def _choose_decimal(search: NotationSearch, options: Any) -> str | None:
    """Return the decimal point of a column, or None if there are two that it may have."""
    if search.n_readings == 1:
        return "" if search.point and search.comma else "." if search.point else ","
    if options.decimal_point is None and options.thousands_mark is not None:
        # Neither of the two separates thousands, so the one that is there is the decimal point.
        return "," if "," in (search.example or "") else "."
    decimal: str | None = options.decimal_point or options.expected_decimal
    return decimal


def _choose_dates(search: NotationSearch, dates: str | None, order: str | None) -> Notation | None:
    """Return the notation of dates, or None if the options do not say enough."""
    if dates not in ("days", "parts") or (search.n_readings == 2 and order is None):
        return None
    if search.n_readings == 1:
        order = _find_order(search)
    assert order is not None
    parts = search.varying_parts(order) if dates == "parts" else ()
    return Notation(search.date_kind, order=order, zoned=True in search.zones, parts=parts)


def _find_order(search: NotationSearch) -> str:
    """Return the order of dates that have one reading; "" if they have no order."""
    if search.day_first and search.month_first:
        return ""
    return "dmy" if search.day_first else "mdy"


def _number_or_truth(search: NotationSearch, decimal: str) -> Notation:
    if search.n_values and search.is_truth:
        return Notation("truth")
    return Notation("number", decimal, search.unit)


def describe_notation(table: Table, search: NotationSearch, notation: Notation | None) -> str:
    """Return what a conversion does, in a few words."""
    words = []
    if notation is None:
        words.append("dates left out")
    elif notation.kind == "truth":
        pairs = sorted(search.truths.items(), key=lambda pair: not pair[1])
        words += [f"{word} as {int(truth)}" for word, truth in pairs[: 2 * _NAMED]]
        words = words or ["1 and 0"]
    elif notation.kind == "date":
        order = {"": "", "dmy": ", day first,", "mdy": ", month first,"}[notation.order]
        way = ", ".join(notation.parts) or "days since 1970-01-01"
        words.append(f"dates{order} as {way}")
    elif notation.is_date:
        words.append("times as parts of a day" if notation.kind == "time" else "durations as days")
    else:
        marks = search.marks
        percent = notation.unit == "%"
        words += [f"{notation.unit} left out, so that 12 % is 12" if percent else notation.unit]
        words += ["decimal commas"] * (notation.decimal == "," and "commas" in marks)
        of_file = getattr(table, "decimal", ".")
        words += ["decimal points"] * (notation.decimal == "." and of_file == ",")
        words += ["thousands"] * (f"thousands{notation.decimal or '.'}" in marks)
        words += ["parentheses as negative"] * ("parentheses" in marks)
        words += ["minus signs at the end"] * ("minus" in marks)
        words = [word for word in words if word] or ([] if search.missing else ["texts as numbers"])
    for word, count in [*search.missing.items()][:_NAMED]:
        words.append(f"{word!r} as missing in {count:,} row{'s' * (count > 1)}")
    return ", ".join(words)


def describe_conversions(converted: Mapping[str, str]) -> str:
    """Return one sentence for all conversions, by the names of the columns."""
    names: dict[str, list[str]] = {}
    for name, words in converted.items():
        names.setdefault(words, []).append(name)
    return "; ".join(f"{list_names(own, _LISTED)} ({words})" for words, own in names.items())


def _ask_about_numbers(
    table: Table,
    columns: Sequence[int],
    searches: Mapping[int, NotationSearch],
    survey: Sequence[ColumnSurvey],
) -> list[str]:
    """Return the question for columns such as 1,234, if there are any."""
    if not columns:
        return []
    search, spell = searches[columns[0]], table.options.spell
    text = search.example or ""
    mark = "," if "," in text else "."
    names = list_names([table.label(i) for i in columns], _LISTED)
    place = survey[columns[0]].place if survey[columns[0]].word == text else ""
    where = f"{place}: " if place and place != "type" else ""
    has = "have" if len(columns) > 1 else "has"
    found = f"is not numeric ({where}{text!r})"
    if not survey[columns[0]].n_words:  # other columns have made it doubtful
        found = f"{has} numbers with two readings"
    elif len(columns) > 1:
        found = f"are not numeric ({where}{text!r})"
    return [
        f"{names} {found}; if {text} "
        f"is {text.replace(mark, '.')}, pass {spell('decimal', mark)}; if it is "
        f"{text.replace(mark, '')}, pass {spell('thousands', mark)}"
    ]


def _ask_about_dates(
    table: Table,
    columns: Sequence[int],
    searches: Mapping[int, NotationSearch],
    survey: Sequence[ColumnSurvey],
) -> list[str]:
    """Return the question for columns of dates, if there are any."""
    if not columns:
        return []
    spell = table.options.spell
    names = list_names([table.label(i) for i in columns], _LISTED)
    first, doubtful = columns[0], [i for i in columns if searches[i].n_readings == 2]
    has = "have" if len(columns) > 1 else "has"
    place = f"{survey[first].place}: " if survey[first].place != "type" else ""
    asked = []
    if table.options.dates in (None, "keep"):
        ways = [spell("dates", way) for way in ("days", "parts", "drop")]
        asked.append(
            f"{names} {has} dates or times ({place}{survey[first].word!r}); pass {ways[0]}, "
            f"{ways[1]} or {ways[2]}"
        )
    if doubtful and table.options.date_order is None:
        asked.append(_ask_about_order(table, doubtful[0], searches[doubtful[0]]))
    return ["; ".join(asked)]


def _ask_about_order(table: Table, column: int, search: NotationSearch) -> str:
    """Return the question for dates such as 03/04/2024."""
    spell, (day, month) = table.options.spell, search.example_days
    return (
        f"{table.label(column)}: {search.example!r} is {_spell_date(day)} with "
        f"{spell('date_order', 'dmy')} and {_spell_date(month)} with {spell('date_order', 'mdy')}"
    )


def _spell_date(days: float) -> str:
    day = date.fromordinal(int(days // 1) + date(1970, 1, 1).toordinal())
    return f"{day.day} {day:%B} {day.year}"


def _suggest_lines(table: Table, words: Sequence[ColumnSurvey]) -> list[str]:
    """Return what helps if the words are units below the names, or comments."""
    header, spell, first = getattr(table, "header", None), table.options.spell, words[0]
    if first.word.startswith("#"):
        return [f"; if # begins comments, pass {spell('comment', '#')}"]
    line = 0 if header is None or header.names is None else header.lines + 1
    if first.place != f"line {line}" or first.word[:1].isdigit():
        return []
    if any(survey.n_words > 1 for survey in words):  # in other lines, too
        return []
    lines = f"{line}:{line}"
    return [
        f"; if line {line} has units, pass {spell('skip_rows', lines)}, and if line {line - 1} is "
        f"a title, {spell('skip_rows', str(line - 1))}"
    ]


def adapt_notation(
    table: Table, column: int, search: NotationSearch, stored: Notation | None
) -> ChosenNotation:
    """Return how a column of new rows is read, so that it means what it did in the fit.

    Raises `ValueError` if it holds something else. `stored`: the notation of the fit, None for
    plain numbers.
    """
    label, known = table.label(column), stored or Notation()
    kind = search.date_kind if search.is_dated else "truth" if search.is_truth else "number"
    is_same = (known.kind == "truth" and search.is_binary) or (
        known.kind == "date" and search.is_compact_date
    )
    if search.n_values == 0 or is_same:
        return ChosenNotation(known, describe_notation(table, search, known))
    if not search.n_readings or kind != known.kind:
        found = search.first if search.first is not None else ""
        raise ValueError(
            f"{table.name}: column {label}: found {found!r}, and the model was fitted on "
            f"{_KINDS[known.kind]}{f'; {search.fault}' if search.fault else ''}; correct the "
            "values, or fit again"
        )
    if known.is_date:
        if (True in search.zones) != known.zoned:
            raise ValueError(
                f"{table.name}: column {label}: found times {'without' if known.zoned else 'with'} "
                "a time zone, and the model was fitted on others; write them as in the fit"
            )
        order = _find_order(search) or known.order
        if search.n_readings == 2:
            order = table.options.date_order or known.order
            if not order:
                raise ValueError(f"{table.name}: {_ask_about_order(table, column, search)}")
        notation = replace(known, order=order)
        return ChosenNotation(notation, describe_notation(table, search, notation))
    units = (search.unit, known.unit)
    # Numbers without a currency may be in any, but 0.12 is not 12 %.
    if units[0] != units[1] and (all(units) or "%" in units):
        words = [f"numbers with {unit}" if unit else "numbers" for unit in units]
        raise ValueError(
            f"{table.name}: column {label}: found {words[0]}, and the model was fitted on "
            f"{words[1]}; write them as in the fit"
        )
    if known.kind == "truth":
        return ChosenNotation(known, describe_notation(table, search, known))
    decimal = _choose_decimal(search, table.options)
    if isinstance(table, TypedTable) and column not in table.others:
        decimal = "."  # numbers by their type, written by Python
    elif search.n_readings == 2 and known.decimal and table.options.decimal_point is None:
        decimal = known.decimal
    if decimal is None:
        raise ValueError(
            f"{table.name}: "
            f"{_ask_about_numbers(table, [column], {column: search}, table.survey(1000))[0]}"
        )
    notation = replace(known, decimal=decimal, unit=search.unit or known.unit)
    return ChosenNotation(notation, describe_notation(table, search, notation))


_KINDS = {
    "number": "numbers",
    "truth": "yes and no, or the like",
    "date": "dates",
    "time": "times",
    "duration": "durations",
}
