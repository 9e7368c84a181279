"""The paper's numbers beside ours: rows by name, cells with both, and how far they are apart."""

from collections.abc import Iterable

from lloydformer.paper.artefact import Found
from lloydformer.paper.numbers import numbers


def paper_row(label: str, name: str) -> dict[str, float]:
    """A row of the paper's table, by column."""
    table = numbers(label)
    return dict(zip(table["columns"], table["rows"][name], strict=True))


def names(label: str) -> list[str]:
    """The rows of the paper's table, in its order."""
    return list(numbers(label)["rows"])


def cell(ours: float, paper: float, digits: int) -> str:
    """Ours, with the paper's in brackets."""
    return f"{ours:.{digits}f} ({paper:.{digits}f})"


def farthest(
    label: str, rows: Found, columns: Iterable[str], among: Iterable[str]
) -> tuple[float, str]:
    """The largest difference of ours to the paper's in these cells, and its row."""
    apart = [
        (abs(rows[name][column] - paper_row(label, name)[column]), name)
        for name in among
        for column in columns
    ]
    most, where = max(apart)
    return round(most, 4), where


def lower(row: Found, columns: Iterable[str], than: str) -> bool:
    """Is one of the columns below another one?"""
    return any(row[column] < row[than] for column in columns)
