"""Values of a text: numbers, and what means that a value is missing."""

import math
import re

MISSING_VALUES = frozenset((
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "None", "none", "?", "-", "--", "<NA>", "NaT",
    "#DIV/0!", "#VALUE!", "#REF!", "#NUM!", "#NAME?", "#NULL!",
))  # fmt: skip
"""Texts that mean a missing value; the last ones are errors of a spreadsheet."""


def number(text: str, decimal: str) -> float:
    """The number that a text stands for, NaN if it is missing; raises ValueError for words.

    >>> number("1,5", ","), number(" 2e3", "."), number("NA", ".")
    (1.5, 2000.0, nan)
    """
    text = text.strip()
    if text in MISSING_VALUES:
        return math.nan
    if "_" in text or (decimal == "," and "." in text):
        raise ValueError(text)
    return float(text.replace(",", ".", 1) if decimal == "," else text)


_GROUPED = re.compile(
    r"[+-]?[0-9]{1,3}(?:(\.)[0-9]{3}(?:\.[0-9]{3})*,|(,)[0-9]{3}(?:,[0-9]{3})*\.)[0-9]+"
)


def between_thousands(text: str) -> str:
    """What stands between the thousands of a number that also has a decimal mark; "" if nothing.

    >>> between_thousands("1.234,50"), between_thousands("12,345,678.9"), between_thousands("1.5")
    ('points', 'commas', '')
    """
    found = _GROUPED.fullmatch(text.strip())
    return "" if found is None else "points" if found[1] else "commas"


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether the text is a number, and not a missing value."""
    if text.strip() in MISSING_VALUES:
        return False
    try:
        number(text, decimal)
    except ValueError:
        return False
    return True
