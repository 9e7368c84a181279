"""Values as text: parse what users type, and format what they read. Imports nothing heavy."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lloydformer.data.paths import PACKED, PREFIX, STANDARD_INPUT

Number = TypeVar("Number", int, float)

# Integers of options must fit into 64 bits, as in NumPy and torch.
LARGEST = 2**63 - 1


def parse_names(text: str | None) -> tuple[str, ...] | None:
    """Parse "a,b,c"; None if the option is not given. Names with commas are between quotes.

    >>> parse_names("height, weight"), parse_names('"size, in cm",weight')
    (('height', 'weight'), ('size, in cm', 'weight'))
    """
    if text is None:
        return None
    # csv reads an empty text as a row without names, and it is one empty name.
    (names,) = csv.reader([text], skipinitialspace=True) if text else [[""]]
    return tuple(name.strip() for name in names)


def parse_clusters(text: str) -> range:
    """Parse "10", "2:20" or "2:20:3" (first:last:step, both ends included).

    A range takes no memory, so a huge one can be compared with the number of rows.

    >>> parse_clusters("10"), parse_clusters("2:5"), list(parse_clusters("2:9:3"))
    (range(10, 11), range(2, 6), [2, 5, 8])
    """
    if not re.fullmatch(r"\d+(:\d+){0,2}", text, re.ASCII):
        raise ValueError(f"-k: found {text!r}; pass a number such as 8, or a range such as 2:20")
    parts = text.split(":")
    if not all(_fits_64_bits(part) for part in parts):
        raise ValueError(f"-k: found {text!r}; pass numbers below 2^63")
    first, *rest = map(int, parts)
    last, step = rest[0] if rest else first, rest[1] if len(rest) > 1 else 1
    if not (1 <= first <= last and step >= 1):
        raise ValueError(
            f"-k: found {text!r}; pass 1 or more, and ranges from a smaller to a larger number"
        )
    return range(first, last + 1, step)


def parse_count(option: str, text: str) -> int | tuple[int, int]:
    """Parse a number, or a range of numbers, both ends included.

    >>> parse_count("points", "512"), parse_count("points", "128:1024")
    (512, (128, 1024))
    """
    parts = text.split(":")
    if not 1 <= len(parts) <= 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"--{option}: found {text!r}; pass a number, or LEAST:GREATEST")
    if not all(_fits_64_bits(part) for part in parts):
        raise ValueError(f"--{option}: found {text}; pass numbers below 2^63")
    numbers = tuple(int(part) for part in parts)
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def _fits_64_bits(digits: str) -> bool:
    # The length first: Python refuses to parse numbers of more than 4300 digits.
    return len(digits) <= 19 and int(digits) <= LARGEST


def parse_numbers(option: str, text: str, kind: Callable[[str], Number]) -> list[Number]:
    """Parse a number, or several between commas.

    >>> parse_numbers("seed", "0,1,2", int)
    [0, 1, 2]
    """
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--{option}: found {text!r}; pass a number, or several as in 0,1,2"
        ) from None


def parse_sizes(option: str, text: str) -> int | float | list[int | float]:
    """Parse a number of rows or a fraction of all rows; several between commas, one per cluster.

    >>> parse_sizes("size-max", "100"), parse_sizes("size-max", "0.1"), parse_sizes("size-min", "5,0.5")
    (100, 0.1, [5, 0.5])
    """  # noqa: E501 (a doctest is one line)
    sizes: list[int | float] = []
    for part in (each.strip() for each in text.split(",")):
        is_count = part.isdecimal() and part.isascii() and _fits_64_bits(part)
        is_fraction = re.fullmatch(r"(0?\.\d+|[01]\.\d*)(e-?\d{1,3})?", part, re.ASCII)
        if not (is_count or is_fraction) or (float(part) > 1 and not is_count):
            raise ValueError(
                f"--{option}: found {text!r}; pass a number of rows (100), a fraction of all rows "
                "(0.1), or one for each cluster (50,0.2,100)"
            )
        sizes.append(int(part) if is_count else float(part))
    return sizes[0] if len(sizes) == 1 else sizes


def data_name(data: str) -> str:
    """Return the name of some data, for outputs: of a file, a folder or a set of OpenML.

    >>> data_name("folder/points.csv.gz"), data_name("openml:iris@1"), data_name("-")
    ('points', 'iris@1', 'stdin')
    """
    if data == STANDARD_INPUT:
        return "stdin"
    path = Path(data.removeprefix(PREFIX)).resolve()
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem
