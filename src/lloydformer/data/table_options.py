"""Options of a table: how its text is written, which columns are used, and how."""

import io
import re
import shlex
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lloydformer.fork_safety import cached_property

Missing = Literal["error", "drop", "median", "ignore", "impute"]
MISSING = get_args(Missing)
# Ways that keep missing values as NaN: the estimator has the same one.
KEPT = ("ignore", "impute")
Sentinels = Literal["missing", "keep"]
SENTINELS = get_args(Sentinels)
# Texts that mean a missing value: those of pandas, some others, and errors of spreadsheets.
_PANDAS = (
    "#N/A #NA -1.#IND -1.#QNAN -NaN -nan 1.#IND 1.#QNAN <NA> N/A NA NULL NaN None n/a nan null"
)
_OTHERS = "none ? - -- NaT #DIV/0! #VALUE! #REF! #NUM! #NAME? #NULL!"
MISSING_VALUES = frozenset(["", "#N/A N/A", *_PANDAS.split(), *_OTHERS.split()])
# Names of separators that are hard to type or to see.
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "space": " "}
# What columns of dates become: days since 1970-01-01, a column for each part, or nothing; numbers
# such as 20240105 may also be kept.
DATES = ("days", "parts", "drop", "keep")
# Orders of dates: 03/04/2024 is the 3rd of April, or the 4th of March.
ORDERS = ("dmy", "mdy")
# Names of marks between thousands.
THOUSANDS = {"comma": ",", "point": ".", "space": " ", "apostrophe": "'"}
# Lines that are left out: "3" for the first three, "2:2" for the second, "1:3,6:6" for both.
_LINES = re.compile(r"\d{1,15}|\d{1,15}:\d{1,15}(,\d{1,15}:\d{1,15})*", re.ASCII)


@dataclass(frozen=True)
class TableOptions:
    """Options for reading a table; raises `ValueError` for values that no file can have.

    Attributes
    ----------
    columns, exclude, one_hot : tuple of str
        Columns to use (None for all), to leave out, and to convert to a column of 0 and 1 for each
        of their values.
    numeric_only : bool
        Leave out columns that hold no numbers.
    id_column : str or None
        A column that names the rows; it is not used for clustering.
    missing : {"error", "drop", "median", "ignore", "impute"}
        What to do with rows that have missing values. With "ignore" and "impute" they stay, for
        estimators with this value of `missing`.
    sep, decimal, encoding, header, sheet : str, bool or None
        How the table is written; None to detect it in the file.
    thousands : str or None
        The mark between thousands in numbers such as 1,234, which have two readings.
    dates : {"days", "parts", "drop", "keep"} or None
        What columns of dates become; None to ask.
    date_order : {"dmy", "mdy"} or None
        The order of dates such as 03/04/2024, which have two readings.
    na_values : tuple of str
        More texts, and numbers, that mean a missing value.
    skip_rows : str or None
        Lines that are left out: "3", the first three, or "2:2,5:7", counted from 1.
    comment : str or None
        The sign at which a comment begins; None to detect lines that are comments.
    sentinels : {"missing", "keep"} or None
        What numbers such as -999 are, if they are far from all others; None to ask.
    shell : bool
        Messages name options of the command line, not of `lf.data.open_dataset`.
    on_workers : bool
        Workers of a cluster read the table; messages name no option that they lack.
    expected : tuple of str
        Columns of a model; a line with all of them has the names, and those above it are titles.
    expected_decimal : str or None
        The decimal point of the rows of a model, for numbers with two readings.
    """

    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    one_hot: tuple[str, ...] = ()
    numeric_only: bool = False
    id_column: str | None = None
    missing: str = "error"
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None
    sheet: str | None = None
    thousands: str | None = None
    dates: str | None = None
    date_order: str | None = None
    na_values: tuple[str, ...] = ()
    skip_rows: str | None = None
    comment: str | None = None
    sentinels: str | None = None
    shell: bool = False
    on_workers: bool = False
    expected: tuple[str, ...] = ()
    expected_decimal: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and len(self.separator or "") != 1:
            known = ", ".join(name for name in SEPARATORS if name.isalpha())
            self._refuse("sep", f"pass one character, or {known}")
        if self.decimal not in (None, ".", ","):
            self._refuse("decimal", "pass . or ,")
        if self.missing not in MISSING:
            self._refuse("missing", f"pass {', '.join(MISSING[:-1])} or {MISSING[-1]}")
        if self.thousands is not None and self.thousands_mark not in THOUSANDS.values():
            self._refuse("thousands", f"pass one of {', '.join(THOUSANDS)}")
        if self.thousands is not None and self.thousands_mark == self.decimal:
            self._refuse("thousands", "it is the decimal point, too; pass two marks that differ")
        choices = {"dates": DATES, "date_order": ORDERS, "sentinels": SENTINELS}
        for option, allowed in choices.items():
            if getattr(self, option) not in (None, *allowed):
                self._refuse(option, f"pass {', '.join(allowed[:-1])} or {allowed[-1]}")
        if self.skip_rows is not None and _LINES.fullmatch(self.skip_rows) is None:
            self._refuse("skip_rows", "pass 3 for the first three lines, or lines as 2:2,5:7")
        if not all(self.skipped) and self.skip_rows != "0":
            self._refuse("skip_rows", "pass lines from a smaller to a larger number")
        if self.comment is not None and not re.fullmatch(r"[^\w\s\"',.+-]", self.comment):
            self._refuse("comment", "pass one sign, such as #, that no value has")
        if self.comment is not None and self.comment == self.separator:
            self._refuse("comment", "it separates values, too; pass two signs that differ")
        if self.encoding is not None:
            try:  # unlike `codecs.lookup` this refuses base64 and others that give no text
                io.TextIOWrapper(io.BytesIO(), self.encoding)
            except (LookupError, ValueError):
                self._refuse("encoding", "pass a name such as utf-8, cp1252 or utf-16")

    def _refuse(self, name: str, repair: str) -> None:
        raise ValueError(f"{self.spell(name)}: found {getattr(self, name)!r}; {repair}")

    @property
    def separator(self) -> str | None:
        """The character that separates values, if the user named one."""
        return None if self.sep is None else SEPARATORS.get(self.sep, self.sep)

    @property
    def thousands_mark(self) -> str | None:
        """The mark between thousands, if the user named one."""
        return None if self.thousands is None else THOUSANDS.get(self.thousands, self.thousands)

    @property
    def decimal_point(self) -> str | None:
        """The decimal point, if the user named it, or a mark between thousands that leaves one."""
        return self.decimal or {",": ".", ".": ","}.get(self.thousands_mark or "")

    @cached_property
    def missing_values(self) -> frozenset[str]:
        """All texts that mean a missing value."""
        return MISSING_VALUES | {value.strip() for value in self.na_values}

    @cached_property
    def skipped(self) -> tuple[range, ...]:
        """The lines that are left out."""
        if self.skip_rows is None:
            return ()
        if ":" not in self.skip_rows:
            return (range(1, int(self.skip_rows) + 1),)
        ends = (part.split(":") for part in self.skip_rows.split(","))
        return tuple(range(int(first), int(last) + 1) for first, last in ends)

    def skips(self, line: int) -> bool:
        """Return True if this line, counted from 1, is left out."""
        return any(line in lines for lines in self.skipped)

    def spell(self, name: str, value: Any = None) -> str:
        """Return an option as the user writes it.

        >>> TableOptions(shell=True).spell("missing", "drop"), TableOptions().spell("sep", ";")
        ('--missing drop', "sep=';'")
        """
        if not self.shell:
            return name if value is None else f"{name}={value!r}"
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            return option if value else f"--no-{name}"
        if isinstance(value, list | tuple):
            value = shlex.quote(",".join(f'"{part}"' if "," in part else part for part in value))
        return option if value is None else f"{option} {value}"
