"""Dates and times as numbers: days since 1970-01-01, or parts such as the month and the hour.

`datetime.strptime` and `dateutil` guess: they read 03/04/2024 in one of its two orders. Here a text
has either one reading or two, and the reader of a column decides between them with all its values.
"""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

# Columns that a date with a time becomes, and one that is a time of day only.
PARTS = ("year", "month", "day", "weekday", "hour")

_TIME = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s?(?P<half>[AaPp])\.?[Mm]\.?)?\s?(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?)?"
)
_MONTH = r"(?P<name>[A-Za-z]{3,9})\.?"
_FORMS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"(?:(?P<first>\d{{1,4}})(?P<sign>[-/.])(?P<second_>\d{{1,2}})(?P=sign)(?P<third>\d{{1,4}}))"
        rf"(?:(?:T|,?\s)\s*{_TIME})?",
        rf"(?P<day>\d{{1,2}})[-\s./]\s?{_MONTH}[-,\s./]\s?(?P<year>\d{{4}})(?:,?\s{_TIME})?",
        rf"{_MONTH}\s(?P<day>\d{{1,2}}),?\s(?P<year>\d{{4}})(?:,?\s{_TIME})?",
        rf"(?:(?P<days>-?\d+)\sdays?,?(?:\s\+?|$))?(?:{_TIME})?",
    )
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september"),
    *("october", "november", "december"),
)
_EPOCH = datetime.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, a time of day or a duration.

    Attributes
    ----------
    day_first, month_first : float or None
        Days since 1970-01-01 where the text was written, for both orders; they are equal for most
        texts, and None for an order in which it is not a date. Days for times and durations.
    kind : {"date", "time", "duration"}
        What it is.
    zone : float or None
        Days from universal time; None if the text has no time zone.
    has_time : bool
        There is a time.
    """

    day_first: float | None
    month_first: float | None
    kind: str
    zone: float | None
    has_time: bool


def read_moment(text: str) -> Moment | None:
    """Read a text; None if it is not a date. Years have four digits.

    >>> read_moment("03/04/2024").day_first - read_moment("2024-04-03").day_first
    0.0
    >>> read_moment("25/04/2024").month_first is None, read_moment("rome") is None
    (True, True)
    """
    # Most texts of a table are numbers or words; this saves four attempts for each.
    if not (text[:1].isdigit() or text[:1] == "-" or text[-4:].isdigit() or ":" in text):
        return None
    numeric, named, month_named, other = _FORMS
    zone, time = None, None
    if match := numeric.fullmatch(text):
        first, second, third = match["first"], match["second_"], match["third"]
        if len(first) == 4 and len(third) <= 2:
            day_first = month_first = _count_days(int(first), int(second), int(third))
        elif len(first) <= 2 and len(third) == 4:
            day_first = _count_days(int(third), int(second), int(first))
            month_first = _count_days(int(third), int(first), int(second))
        else:
            return None
        kind = "date"
    elif match := named.fullmatch(text) or month_named.fullmatch(text):
        starts = (month.startswith(match["name"].lower()) for month in _MONTHS)
        month = next((i for i, found in enumerate(starts, start=1) if found), 0)
        day_first = month_first = _count_days(int(match["year"]), month, int(match["day"]))
        kind = "date"
    elif text and (match := other.fullmatch(text)):
        kind = "time" if match["days"] is None else "duration"
        day_first = month_first = float(match["days"] or 0)
    else:
        return None
    if match["hour"] is not None:
        time = _read_time(match)
        if time is None:
            return None
        zone = _read_zone(match["zone"])
    if day_first is None and month_first is None:
        return None
    added = time or 0.0
    return Moment(
        None if day_first is None else day_first + added,
        None if month_first is None else month_first + added,
        *(kind, zone, time is not None),
    )


def has_short_year(text: str) -> bool:
    """Return True for a date such as 03/04/24, whose century and order are not known."""
    return re.fullmatch(r"\d{1,2}([-/.])\d{1,2}\1\d\d(\s.*)?", text.strip()) is not None


def _count_days(year: int, month: int, day: int) -> float | None:
    try:
        return float(datetime.date(year, month, day).toordinal() - _EPOCH)
    except ValueError:
        return None


def _read_time(match: re.Match[str]) -> float | None:
    """Return a time of day in days."""
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if match["half"] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"] in "Pp" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    return (3600 * hour + 60 * minute + second + float(f"0.{match['fraction'] or 0}")) / 86400


def _read_zone(text: str | None) -> float | None:
    if text is None or text[0] not in "+-":
        return None if text is None else 0.0
    minutes = 60 * int(text[1:3]) + int(text[3:].lstrip(":") or 0)
    return (minutes if text[0] == "+" else -minutes) / 1440


def read_compact_dates(values: np.ndarray) -> np.ndarray | None:
    """Return numbers such as 20240105 as days since 1970-01-01; None if one of them is not a date.

    >>> read_compact_dates(np.array([19700102.0, 20240229.0])), read_compact_dates(np.array([2e7]))
    (array([1.0000e+00, 1.9782e+04]), None)
    """
    numbers = values.astype(np.int64)
    year, month, day = numbers // 10_000, numbers // 100 % 100, numbers % 100
    if (numbers != values).any() or ((month < 1) | (month > 12) | (day < 1)).any():
        return None
    first = (year - 1970).astype("datetime64[Y]").astype("datetime64[M]") + (month - 1)
    days = first.astype("datetime64[D]") + (day - 1)
    # Another month: there is no such day in this one.
    return None if (days.astype("datetime64[M]") != first).any() else days.astype(np.float64)


def varying_parts(days: np.ndarray, has_time: bool) -> tuple[str, ...]:
    """Return the parts of dates that are not the same in all of them; the day if all are."""
    parts = PARTS if has_time else PARTS[:-1]
    varies = np.ptp(write_parts(days, parts), axis=0) > 0
    return tuple(part for part, v in zip(parts, varies, strict=True) if v) or ("day",)


def write_parts(days: np.ndarray, parts: Sequence[str]) -> np.ndarray:
    """Return parts of dates as columns: year, month, day, weekday from 1 (Monday), hour.

    >>> write_parts(np.array([0.25, 31.0]), PARTS)
    array([[1.97e+03, 1.00e+00, 1.00e+00, 4.00e+00, 6.00e+00],
           [1.97e+03, 2.00e+00, 1.00e+00, 7.00e+00, 0.00e+00]])
    """
    missing = np.isnan(days)
    whole = np.floor(np.where(missing, 0.0, days))
    date = whole.astype("int64").astype("datetime64[D]")
    month = date.astype("datetime64[M]")
    columns = {
        "year": month.astype("datetime64[Y]").astype(np.int64) + 1970,
        "month": month.astype(np.int64) % 12 + 1,
        "day": (date - month.astype("datetime64[D]")).astype(np.int64) + 1,
        "weekday": (whole + 3) % 7 + 1,  # 1970-01-01 was a Thursday
        # Whole microseconds: days of today have 4e-12 days.
        "hour": np.round(86400 * (np.where(missing, 0.0, days) - whole), 6) / 3600,
    }
    found = np.stack([columns[part] for part in parts], axis=1).astype(np.float64)
    found[missing] = np.nan
    return found
