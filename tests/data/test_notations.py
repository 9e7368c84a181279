"""Values as banks and spreadsheets write them are read as they were written, or refused."""

import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.data.dates import PARTS, read_moment, write_parts
from lloydformer.data.notations import MISSING_WORDS, Notation, NotationSearch, read_amount
from lloydformer.data.special_numbers import DATES, find_in_columns

EPOCH = datetime.datetime(1970, 1, 1)


def written(value, decimals, thousands, point):
    """A number with these marks, as Python alone writes it with commas and points."""
    text = f"{value:,.{decimals}f}"
    return text.translate(str.maketrans({",": thousands, ".": point}))


def search_of(texts):
    search = NotationSearch()
    for text in texts:
        search.add(text)
    return search


@given(
    st.lists(st.decimals(-(10**9), 10**9, places=3), min_size=1, max_size=8),
    st.integers(0, 3),
    st.sampled_from([(",", "."), (".", ","), (" ", ","), ("\u202f", "."), ("'", "."), ("", ",")]),
    st.sampled_from(["{}", "${}", "{} €", "EUR {}", "{}%", "-£{}", "({})", "{}-", "kr {}"]),
)
def test_a_column_is_read_as_it_was_written_or_is_doubtful(values, decimals, marks, form):
    """Whatever the user does not choose has one reading, and this one is right."""
    negative = form in ("-£{}", "({})", "{}-")
    texts, numbers = [], []
    for value in values:
        number = round(abs(value) if negative else value, decimals)
        texts.append(form.format(written(number, decimals, *marks)))
        numbers.append(-float(number) if negative else float(number))
    search = search_of(texts)
    assert search.n_readings in (1, 2)
    decimals_used = marks[1] if search.n_readings == 2 else "." if search.point else ","
    notation = Notation("number", decimals_used, search.unit)
    np.testing.assert_array_equal(notation.parse(texts, frozenset())[:, 0], numbers)


AMOUNTS = {
    "1,234.5": (1234.5, None),
    "1.234,5": (None, 1234.5),
    "0,123": (None, 0.123),
    "1,234": (1234.0, 1.234),
    "1234,567": (None, 1234.567),
    "1,23": (None, 1.23),
    "12,34,567.8": (1234567.8, None),
    "1 234": (1234.0, 1234.0),
    "1'234’567": (None, None),
    "1,234 567": (None, None),
    "1,2345": (None, 1.2345),
    "1e3": (1000.0, 1000.0),
    ".5": (0.5, None),
    "5.": (5.0, None),
    "US$ 5": (5.0, 5.0),
    "$5 USD": (5.0, 5.0),
    "-$5": (-5.0, -5.0),
    "$-5": (-5.0, -5.0),
    "5,00 EUR-": (None, -5.0),
}
NO_AMOUNTS = [
    *("", "-", "$", "%", "A5", "5A", "ROW 5", "5 EUR USD", "€5%", "(-5)", "(5", "5)", "--5", "+5-"),
    *("1_000", "0x10", "5 5", "1..2", "2024-01-05", "10:30", "5 kg", "<5", "5*", "٣", "12/5"),
]


@pytest.mark.parametrize("text", AMOUNTS)
def test_readings_of_amounts(text):
    amount = read_amount(text)
    assert ((None, None) if amount is None else (amount.point, amount.comma)) == AMOUNTS[text]


@pytest.mark.parametrize("text", NO_AMOUNTS)
def test_what_is_no_amount(text):
    assert read_amount(text) is None


FORMS = {
    "%Y-%m-%d": 0,
    "%Y/%m/%d": 0,
    "%Y-%m-%d %H:%M:%S": 1,
    "%Y-%m-%dT%H:%M:%S.%f": 1,
    "%d/%m/%Y": 0,
    "%d.%m.%Y %H:%M:%S": 1,
    "%d %b %Y": 0,
    "%d-%B-%Y": 0,
    "%b %d, %Y %H:%M:%S": 1,
    "%d/%m/%Y %I:%M:%S %p": 1,
}


@given(st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2500, 1, 1)))
def test_dates_are_those_that_python_writes(moment):
    for form, has_time in FORMS.items():
        text = moment.strftime(form)
        # strftime does not fill up years before 1000, and these are none.
        same = datetime.datetime.strptime(text, form)
        found = read_moment(text)
        days = (same - EPOCH) / datetime.timedelta(days=1)
        assert found is not None
        assert found.day_first == pytest.approx(days, rel=1e-15), text
        assert found.has_time == bool(has_time)
        (parts,) = write_parts(np.array([found.day_first]), PARTS)
        hour = (same - same.replace(hour=0, minute=0, second=0, microsecond=0)).seconds / 3600
        assert parts[:4].tolist() == [same.year, same.month, same.day, same.isoweekday()]
        assert parts[4] == pytest.approx(hour, abs=1 / 3600)


NO_DATES = [
    "2024-02-30",
    "31/31/2024",
    "1/2/24",
    "24-01-05",
    "5 Foo 2024",
    "25:00",
    "10:61",
    "12",
    "2024-01-05 24:30",
    "13:00 PM",
    "2024",
    "Jan 2024",
    "yesterday",
    "-",
    "1-2-3",
]


@pytest.mark.parametrize("text", NO_DATES)
def test_what_is_no_date(text):
    assert read_moment(text) is None


def test_zones_and_durations():
    assert read_moment("2024-01-05T06:00:00-05:30").zone == pytest.approx(-5.5 / 24)
    assert read_moment("2024-01-05 06:00Z").zone == 0
    assert read_moment("2024-01-05 06:00").zone is None
    notation = Notation("date", zoned=True)
    assert notation.read("1970-01-02T02:00+02:00") == pytest.approx(1)
    assert read_moment("-1 days +12:00:00").day_first == -0.5
    assert read_moment("1 day, 12:00:00").kind == "duration"
    assert not search_of(["2024-01-05 06:00Z", "2024-01-05 06:00"]).n_readings
    assert not search_of(["2024-01-05", "10:30"]).n_readings


def test_truth_has_words_for_both_or_long_ones():
    assert search_of(["yes", "No", "missing"]).n_readings == 1
    assert search_of(["no", "no"]).n_readings == 1
    assert search_of(["f", "f"]).n_readings == 0
    assert search_of(["f", "T"]).n_readings == 1
    assert search_of(["yes", "1"]).n_readings == 0
    assert all(word == word.lower() for word in MISSING_WORDS)


def sentinels_of(*columns, forms=None):
    points = np.array(columns, dtype=np.float64).T
    ends = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    more = () if forms is None else (forms,)
    found = find_in_columns(points, ends, range(points.shape[1]), *more)
    return [(each.column, each.value, each.count) for each in found]


def test_sentinels_are_far_and_repeated():
    values = [3.0, 5.0, 4.0, 8.0, 6.0]
    assert sentinels_of([*values, -999, -999]) == [(0, -999.0, 2)]
    assert sentinels_of([*values, 99, 99, -99, -99]) == [(0, 99.0, 2), (0, -99.0, 2)]
    assert sentinels_of([*values, np.nan, 1e20, 1e20]) == [(0, 1e20, 2)]
    assert sentinels_of([*values, -999, 5], [*values, 4, -999]) == [(0, -999.0, 1), (1, -999.0, 1)]
    survey = [1, 5, 3, 4, 2, 2]  # answers, and codes for refused, not known and not asked
    assert sentinels_of([*survey, 97, 98, 99, 99]) == [(0, 97.0, 1), (0, 98.0, 1), (0, 99.0, 2)]
    assert sentinels_of([*survey, 97, 97]) == [(0, 97.0, 2)]
    assert sentinels_of([*survey, 998, 998]) == [(0, 998.0, 2)]
    assert sentinels_of([*survey, 97]) == []
    assert sentinels_of([31, 75, 97, 97, 98, 99, 99]) == []
    # Once, near the others, of another form, the only other value, alone, or in a negative column.
    for others in ([-999], [12, 12], [1000, 1000], [9, 9]):
        assert sentinels_of([*values, *others]) == []
    assert sentinels_of([20, 40, 90, 99, 99]) == []
    assert sentinels_of([5, 5, 99, 99]) == []
    assert sentinels_of([99, 99, 99]) == []
    assert sentinels_of([-2000, 500, -300, -999, -999]) == []
    assert sentinels_of([2000, 0, 300, -999, -999]) == [(0, -999.0, 2)]
    assert sentinels_of([19700, 19723, 0, 0], forms=DATES) == [(0, 0.0, 2)]
