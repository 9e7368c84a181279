"""Values of a text: numbers, and what means that a value is missing."""

import math

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


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether the text is a number, and not a missing value."""
    if text.strip() in MISSING_VALUES:
        return False
    try:
        number(text, decimal)
    except ValueError:
        return False
    return True
