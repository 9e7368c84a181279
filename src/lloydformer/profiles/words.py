"""Numbers and lists as words, for people to read. Imports nothing heavy."""

import math
from collections.abc import Sequence


def format_number(value: float | int, digits: int = 4) -> str:
    """Format a number without an exponent, unless it is tiny or huge.

    >>> format_number(29734.6), format_number(-0.00123456), format_number(2.50)
    ('29,735', '-0.001235', '2.5')
    >>> format_number(1e-9), format_number(0)
    ('1e-09', '0')
    """
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    # Outside of this range zeros would fill the cell of a table, and float64 has 15 digits.
    if not 1e-6 <= abs(value) < 1e15:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def format_count(number: int, noun: str) -> str:
    """Format a number with its noun.

    >>> format_count(1, "iteration"), format_count(1200, "row")
    ('1 iteration', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def join_words(words: Sequence[str], most: int = 6) -> str:
    """Join words for a sentence: the first ones, and how many there are.

    >>> join_words(["a"]), join_words(["a", "b", "c"]), join_words(["a", "b", "c"], most=1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
