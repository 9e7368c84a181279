"""Numbers and nouns for readers."""

import math
from collections.abc import Sequence


def plain(value: float | int, digits: int = 4) -> str:
    """A number without an exponent, unless it is tiny or huge.

    >>> plain(29734.6), plain(-0.00123456), plain(2.50), plain(1e-9), plain(0)
    ('29,735', '-0.001235', '2.5', '1e-09', '0')
    """
    size = abs(value)
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    if not 1e-6 <= size < 1e15:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "iteration"), counted(1200, "row")
    ('1 iteration', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str], most: int = 6) -> str:
    """Words in a sentence: the first ones, and how many there are.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], most=1)
    ('a', 'a, b and c', 'a and 2 more')
    """
    if len(words) > most:
        return f"{', '.join(words[:most])} and {len(words) - most} more"
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
