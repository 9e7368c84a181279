"""Conversion of texts to numbers: amounts of money, percent, yes and no, dates.

A column is read in one notation. It is found from all of its values: a notation that cannot read
one of them is ruled out, and if two are left that give different numbers, the user is asked. So no
value is changed by a factor of 1000 or from April to March without a word.
"""

import math
import re
from collections.abc import Iterable, Set
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lloydformer.data.dates import (
    PARTS,
    has_short_year,
    read_compact_dates,
    read_moment,
    varying_parts,
    write_parts,
)

# Words for a missing value among numbers, dates, or yes and no, in small letters. Elsewhere they
# may be categories, so they are not among those of every text (`csv_format.MISSING_VALUES`).
MISSING_WORDS = frozenset(
    (
        *("missing", "unknown", "tbd", "tba", "na", "n/a", "n.a.", "n. a.", "n.a", "#na", "none"),
        *("not available", "not applicable", "no data", "nodata", "undefined", "undef", "blank"),
        *("empty", "not measured", "not recorded", "k.a.", "k. a.", "keine angabe", "s.d.", "null"),
        *(".", "..", "...", "-", "--", "---", "–", "—", "?", "??", "???", "nan", "nat", "<na>"),
    )
)
_YES = "yes true on y t ja wahr oui vrai si sí sì da да verdadero vero sim"
_NO = "no false off n f nein falsch non faux não nao нет falso"
_TRUE, _FALSE = frozenset(_YES.split()), frozenset(_NO.split())
# Currencies of ISO 4217 that are in use; any three letters would make numbers of ROW 12.
_CURRENCIES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN "
    "BWP BYN BZD CAD CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD "
    "FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY "
    "KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP "
    "MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR "
    "RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT "
    "TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF XPF YER ZAR ZMW "
    "ZWL"
)
_CODES = _CURRENCIES.split()
_SIGNS = "$¢£¤¥֏؋৲৳૱௹฿៛₠₡₢₣₤₥₦₧₨₩₪₫€₭₮₯₰₱₲₳₴₵₸₹₺₻₼₽₾₿﷼﹩＄￠￡￥￦"
_WORDS = ("kr", "Kr", "zł", "Kč", "Ft", "лв", "Rs", "руб")
_UNIT = (
    rf"(?:[A-Z]{{0,2}}[{re.escape(_SIGNS)}]|(?:{'|'.join(_CODES)})(?![A-Za-z])|"
    rf"(?:{'|'.join(map(re.escape, _WORDS))})\.?(?![A-Za-z])|%)"
)
# Marks between thousands; Swiss ones are apostrophes, and spaces are often those that do not break.
_SPACES, _APOSTROPHES = " \u00a0\u2009\u202f", "'’ʼ′"
_MINUS = "-−–"
_AMOUNT = re.compile(
    rf"(?:(?P<unit0>{_UNIT})\s*)?(?P<open>\()?\s*(?P<sign1>[{_MINUS}+])?\s*"
    rf"(?P<unit1>{_UNIT})?\s*(?P<sign2>[{_MINUS}+])?\s*"
    rf"(?P<digits>[.,]?[0-9](?:[0-9.,{_SPACES}{_APOSTROPHES}]*[0-9])?[.,]?(?:[eE][+-]?[0-9]+)?)"
    rf"\s*(?P<sign3>[{_MINUS}])?\s*(?P<unit2>{_UNIT})?\s*(?P<sign4>[{_MINUS}])?\s*(?P<close>\))?"
)


def _digit_forms(point: str, thousands: str) -> re.Pattern[str]:
    """Return the form of digits with this decimal point, and this mark between thousands."""
    point = re.escape(point)
    mark = f"(?P<mark>[{thousands}{_SPACES}{_APOSTROPHES}])"
    groups = rf"[1-9][0-9]{{0,2}}{mark}[0-9]{{3}}(?:(?P=mark)[0-9]{{3}})*"
    # In India groups have two digits, but for the last one: 12,34,567.
    groups += rf"|[1-9][0-9]?(?:{re.escape(thousands)}[0-9]{{2}})+{re.escape(thousands)}[0-9]{{3}}"
    plain = rf"(?:[0-9]+(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    return re.compile(rf"(?P<plain>{plain})|(?:{groups})(?:{point}[0-9]*)?")


# Digits by their decimal point.
_DIGITS = {".": _digit_forms(".", ","), ",": _digit_forms(",", ".")}


@dataclass(frozen=True, slots=True)
class Amount:
    """A number with signs around it.

    Attributes
    ----------
    point, comma : float or None
        Its value if the decimal point is "." or ","; None if it is no number then.
    unit : str
        A sign or code of a currency, "%" or "".
    marks : frozenset of str
        How it is written, for the note: "parentheses", "minus" (at the end), "commas" (decimal),
        "thousands." or "thousands," if it has groups of digits with this decimal point.
    """

    point: float | None
    comma: float | None
    unit: str
    marks: frozenset[str]


def read_amount(text: str) -> Amount | None:
    """Read a number as banks and spreadsheets write it; None if it is not one.

    >>> read_amount("($1,234.50)").point, read_amount("1.234,50 €").comma, read_amount("12-").point
    (-1234.5, 1234.5, -12.0)
    >>> (read_amount("1,234").point, read_amount("1,234").comma), read_amount("C012") is None
    ((1234.0, 1.234), True)
    """
    match = _AMOUNT.fullmatch(text)
    if match is None:
        return None
    given = [match[f"sign{i}"] for i in (1, 2, 3, 4) if match[f"sign{i}"]]
    brackets = match["open"] is not None
    units = [match[name].rstrip(".") for name in ("unit0", "unit1", "unit2") if match[name]]
    if brackets != (match["close"] is not None) or len(given) + brackets > 1:
        return None
    # "$12 USD" names one currency twice; "€12 %" is none.
    if len(units) > 2 or (len(units) == 2 and ("%" in units or units[1] not in _CODES)):
        return None
    negative = brackets or (given != [] and given[0] in _MINUS)
    values, marks = list[float | None](), set[str]()
    for decimal in (".", ","):
        form = _DIGITS[decimal].fullmatch(match["digits"])
        if form is None:
            values.append(None)
            continue
        spaced = match["digits"].replace(decimal, "#")
        digits = re.sub(rf"[.,{_SPACES}{_APOSTROPHES}]", "", spaced).replace("#", ".")
        values.append(-float(digits) if negative else float(digits))
        if form["plain"] is None:
            marks.add(f"thousands{decimal}")
        if decimal == "," and "#" in spaced:
            marks.add("commas")
    if values == [None, None]:
        return None
    if brackets:
        marks.add("parentheses")
    if match["sign3"] or match["sign4"]:
        marks.add("minus")
    return Amount(values[0], values[1], units[-1] if units else "", frozenset(marks))


def reads_as_number(text: str) -> bool:
    """Return True for a number in any notation."""
    return read_amount(text.strip()) is not None


@dataclass(frozen=True)
class Notation:
    """Conversion of the texts of a column to numbers.

    Attributes
    ----------
    kind : {"number", "truth", "date", "time", "duration"}
        "truth" is yes and no, or true and false.
    decimal : {"", ".", ","}
        The decimal point of numbers; "" if they are the same with both.
    unit : str
        A currency, "%" or "".
    order : {"", "dmy", "mdy"}
        Of dates such as 03/04/2024; "" if there are none of these.
    zoned : bool
        Times have time zones.
    parts : tuple of str
        The parts of dates that are columns; none for one column of days.
    """

    kind: str = "number"
    decimal: str = ""
    unit: str = ""
    order: str = ""
    zoned: bool = False
    parts: tuple[str, ...] = ()

    @property
    def is_date(self) -> bool:
        """True for dates, times and durations."""
        return self.kind in ("date", "time", "duration")

    def read(self, text: str) -> float:
        """Return the number of a text; raises `ValueError` if it is in another notation."""
        value: float | None = None
        if self.kind == "number":
            amount = read_amount(text)
            # A percent sign is in all values or in none: 12 % and 0.12 may be the same.
            if amount is not None and ("%" in (self.unit, amount.unit)) <= (
                self.unit == amount.unit
            ):
                value = amount.comma if self.decimal == "," else amount.point
            elif amount is None and text.lower().lstrip("+-") in ("inf", "infinity"):
                value = float(text)
        elif self.kind == "truth":
            truth = _read_truth(text)
            # New rows may have 1 and 0, where those of the fit had yes and no.
            if text in _ONE_AND_ZERO or truth is not None:
                value = float(text if truth is None else truth)
        else:
            moment = read_moment(text)
            if moment is None and self.kind == "date" and _COMPACT.fullmatch(text):
                days = read_compact_dates(np.array([float(text)]))
                value = None if days is None else float(days[0])
            elif moment is not None and (moment.zone is not None) == self.zoned:
                value = moment.month_first if self.order == "mdy" else moment.day_first
                if value is not None and not self.parts:
                    value -= moment.zone or 0.0  # days in universal time; parts as they are written
        if value is None:
            raise ValueError(text)
        return value

    def parse(self, texts: Iterable[Any], missing: Set[str]) -> np.ndarray:
        """Return the columns of numbers (m, width); NaN where a value is missing.

        `missing`: texts for missing values, besides `MISSING_WORDS`.
        """
        known: dict[Any, float] = {}  # most columns of texts repeat them
        found = []
        for text in texts:
            if text not in known:
                word = "" if text is None else str(text).strip()
                lacks = word in missing or word.lower() in MISSING_WORDS
                known[text] = math.nan if lacks else self.read(word)
            found.append(known[text])
            if len(known) > _REMEMBERED:
                known.clear()
        values = np.array(found, dtype=np.float64)
        return write_parts(values, self.parts) if self.parts else values[:, None]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Any) -> "Notation | None":
        """Read the JSON object of `to_json`; raises `ValueError` for another one."""
        if value is None:
            return None
        try:
            notation = cls(**(value | {"parts": tuple(value["parts"])}))
        except (KeyError, TypeError) as error:
            raise ValueError(f"notation {error}") from None
        kinds = ("number", "truth", "date", "time", "duration")
        if notation.kind not in kinds or not set(notation.parts) <= set(PARTS):
            raise ValueError("notation of another version")
        return notation


# Dates as numbers, which have a decimal point in columns with missing values.
_COMPACT = re.compile(r"(19|20)[0-9]{6}(\.0)?")
_ONE_AND_ZERO = ("1", "0", "1.0", "0.0")
# Times of a search; more than a year has days.
_DAYS = 400
# Texts whose numbers are remembered while a column is read; bounds memory.
_REMEMBERED = 1 << 16


def _read_truth(text: str) -> bool | None:
    word = text.casefold()
    return True if word in _TRUE else False if word in _FALSE else None


@dataclass
class NotationSearch:
    """Summary of the values of a column so far; `add` reads them one by one.

    Attributes
    ----------
    n_values : int
        Values that are not missing.
    missing : dict
        Words for missing values, and how many there are.
    first : str or None
        The first value.
    example : str or None
        The first value with two readings.
    """

    n_values: int = 0
    missing: dict[str, int] = field(default_factory=dict)
    first: str | None = None
    example: str | None = None
    example_days: tuple[float, float] = (0.0, 0.0)  # if it is a date
    short_year: str | None = None
    is_number: bool = True
    is_truth: bool = True
    point: bool = True  # all numbers have a value with this decimal point
    comma: bool = True
    units: dict[str, str] = field(default_factory=dict)
    marks: set[str] = field(default_factory=set)
    values: set[float | None] = field(default_factory=set)  # some of the numbers
    truths: dict[str, bool] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)  # of dates
    day_first: bool = True
    month_first: bool = True
    days: set[tuple[float | None, float | None]] = field(default_factory=set)  # some of them
    zones: set[bool] = field(default_factory=set)
    has_time: bool = False
    is_compact: bool = True
    leading_zero: bool = False

    def add(self, text: str, count: int = 1) -> None:
        """Read a value, without spaces around it, that is in `count` rows."""
        if text.lower() in MISSING_WORDS:
            self.missing[text] = self.missing.get(text, 0) + count
            return
        self.n_values += count
        self.first = text if self.first is None else self.first
        if self.is_number:
            self._add_number(text)
        if self.is_truth:
            truth = _read_truth(text)
            self.is_truth = truth is not None
            if truth is not None and len(self.truths) < 8:
                self.truths.setdefault(text, truth)
        if self.kinds != {"word"}:
            self._add_moment(text)

    def _add_number(self, text: str) -> None:
        amount = read_amount(text)
        if amount is None:
            self.is_number = text.lower().lstrip("+-") in ("inf", "infinity")
            return
        self.point &= amount.point is not None
        self.comma &= amount.comma is not None
        self.is_number = self.point or self.comma
        both = None not in (amount.point, amount.comma)
        if self.example is None and both and amount.point != amount.comma:
            self.example = text
        self.units.setdefault(amount.unit, text)
        self.is_compact = self.is_compact and _COMPACT.fullmatch(text) is not None
        if len(self.values) < 3:
            self.values.add(amount.point)
        self.marks |= amount.marks
        self.leading_zero |= re.match(r"0[0-9]", text) is not None

    def _add_moment(self, text: str) -> None:
        moment = read_moment(text)
        if moment is None:
            if self.short_year is None and has_short_year(text):
                self.short_year = text
            self.kinds = {"word"}
            return
        self.kinds.add(moment.kind)
        self.zones.add(moment.zone is not None)
        self.has_time |= moment.has_time and (moment.day_first or moment.month_first or 0) % 1 != 0
        self.day_first &= moment.day_first is not None
        self.month_first &= moment.month_first is not None
        day, month = moment.day_first, moment.month_first
        if self.example is None and day is not None and month is not None and day != month:
            self.example, self.example_days = text, (day, month)
        if len(self.days) <= _DAYS:
            self.days.add((day, month))

    @property
    def is_dated(self) -> bool:
        """True if all values are dates, all are times, or all are durations."""
        alike = self.kinds in ({"date"}, {"time"}, {"duration"}, {"time", "duration"})
        return alike and len(self.zones) == 1 and (self.day_first or self.month_first)

    @property
    def date_kind(self) -> str:
        """The kind of the dates, for `Notation`."""
        (kind,) = self.kinds - {"time"} or {"time"}
        return kind

    def varying_parts(self, order: str) -> tuple[str, ...]:
        """Return the parts of the dates that differ between rows; () for durations."""
        if self.date_kind != "date":
            return ("hour",) if self.date_kind == "time" else ()
        parts = PARTS if self.has_time else PARTS[:-1]
        if len(self.days) > _DAYS:  # more than a year has
            return parts
        days = np.array([pair[order == "mdy"] for pair in self.days], dtype=np.float64)
        return varying_parts(days, self.has_time)

    @property
    def unit(self) -> str:
        """The currency of numbers, "%" or ""."""
        return next((unit for unit in self.units if unit), "")

    @property
    def is_binary(self) -> bool:
        """True if all values are 1 or 0."""
        return self.is_number and self.n_values > 0 and self.values <= {0.0, 1.0}

    @property
    def is_compact_date(self) -> bool:
        """True if all values may be dates such as 20240105."""
        return self.is_number and self.n_values > 0 and self.is_compact

    @property
    def n_readings(self) -> int:
        """Number of notations that read all values and give different numbers; 0 for words."""
        if self.n_values == 0:
            return 1 if self.missing else 0
        if self.is_truth:
            # Single letters are truth values only if both are there: f may be female.
            long = any(len(word) > 1 for word in self.truths)
            return int(long or len(set(self.truths.values())) == 2)
        if self.is_number:
            currencies = set(self.units) - {""}
            mixed = len(currencies) > 1 or ("%" in currencies and "" in self.units)
            return 0 if mixed else 1 + (self.example is not None and self.point and self.comma)
        if self.is_dated:
            return 1 + (self.example is not None and self.day_first and self.month_first)
        return 0

    @property
    def fault(self) -> str:
        """Why numbers are not read, in words; "" if it is not about their signs."""
        if self.is_number and self.n_values and not self.n_readings:
            texts = list(map(repr, self.units.values()))[:2]
            return f"found {' and '.join(texts)}, which may have different units"
        if self.kinds and self.kinds <= {"date", "time", "duration"}:
            if len(self.zones) > 1:
                return "some of these times have a time zone, and others have none"
            if not (self.day_first or self.month_first):
                return "in some of these dates the day comes first, and in others the month"
            if not self.is_dated:
                return "some of these are dates, and others are times alone"
        if self.short_year is not None:
            return f"found {self.short_year!r}; write years with four digits"
        return ""
