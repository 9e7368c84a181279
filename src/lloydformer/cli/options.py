"""Options that hold several values: lists between commas, ranges with a colon."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from lloydformer.data.paths import PACKED, PREFIX, STANDARD_INPUT

T = TypeVar("T", int, float)

LARGEST = 2**63 - 1
"""The largest integer of 64 bits, an upper bound of integer options."""
LARGEST_SEED = 2**32 - 1
"""Upper bound of seeds: NumPy's random states take no larger ones."""


def integer(*names: str, least: int = 1, most: int = LARGEST, help: str) -> Any:
    """Return a typer option for an integer; a larger one than `most` ends the command."""

    def check(value: int | None) -> int | None:
        if value is not None and value > most:
            raise typer.BadParameter(f"found {value}; pass at most {most}")
        return value

    return typer.Option(*names, min=least, callback=check, help=help)


def choice(*names: str, among: Sequence[str], help: str, **more: Any) -> Any:
    """Return a typer option for one of some words, which shells complete."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in among if word.startswith(incomplete)]

    return typer.Option(*names, autocompletion=complete, help=help, **more)


Sep = Annotated[
    str | None,
    choice(among=("comma", "semicolon", "tab", "bar", "space"), metavar="SIGN",
           help="Separator of values.  [default: recognised]"),
]  # fmt: skip
Decimal = Annotated[
    str | None,
    choice(among=(".", ","), metavar=".|,", help="Decimal point.  [default: recognised]"),
]
Encoding = Annotated[
    str | None,
    choice(among=("utf-8", "cp1252", "latin-1", "utf-16"), metavar="NAME",
           help="Encoding of the text.  [default: recognised]"),
]  # fmt: skip
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", show_default=False,
                 help="Whether the first line has column names.  [default: recognised]"),
]  # fmt: skip
Sheet = Annotated[
    str | None, typer.Option(metavar="NAME", help="Sheet of an Excel file.  [default: the first]")
]
IdColumn = Annotated[
    str | None,
    typer.Option("--id-column", metavar="NAME",
                 help="Column that names the rows: not clustered, but copied to the labels."),
]  # fmt: skip


def names_of(text: str | None) -> tuple[str, ...] | None:
    """Parse "a,b,c"; None if the option is not given. Names with commas are between quotes.

    >>> names_of("height, weight"), names_of('"size, in cm",weight')
    (('height', 'weight'), ('size, in cm', 'weight'))
    """
    if text is None:
        return None
    (names,) = csv.reader([text], skipinitialspace=True) if text else [[""]]
    return tuple(name.strip() for name in names)


def stem_of(data: str) -> str:
    """The name of some data, for outputs: of a file, a folder or a set of OpenML.

    >>> stem_of("folder/points.csv.gz"), stem_of("openml:iris@1"), stem_of("-")
    ('points', 'iris@1', 'stdin')
    """
    if data == STANDARD_INPUT:
        return "stdin"
    path = Path(data.removeprefix(PREFIX)).resolve()
    return Path(path.stem).stem if path.suffix.lower() in PACKED else path.stem


def count_of(option: str, text: str) -> int | tuple[int, int]:
    """Parse a number, or a range of numbers, both ends included.

    >>> count_of("points", "512"), count_of("points", "128:1024")
    (512, (128, 1024))
    """
    parts = text.split(":")
    if not 1 <= len(parts) <= 2 or not all(part.isdecimal() for part in parts):
        raise ValueError(f"--{option}: found {text!r}; pass a number, or LEAST:GREATEST")
    if any(len(part) > 19 or int(part) > LARGEST for part in parts):
        raise ValueError(f"--{option}: found {text}; pass numbers below 2^63")
    numbers = tuple(int(part) for part in parts)
    return numbers[0] if len(numbers) == 1 else (numbers[0], numbers[1])


def numbers_of(option: str, text: str, kind: Callable[[str], T]) -> list[T]:
    """Parse a number, or several between commas.

    >>> numbers_of("seed", "0,1,2", int)
    [0, 1, 2]
    """
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--{option}: found {text!r}; pass a number, or several as in 0,1,2"
        ) from None
