"""A table of points, and the choice of its columns by name or number."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Table:
    """An array of points (n, d), and the names of its columns if it has names."""

    points: np.ndarray
    names: tuple[str, ...] | None


class ColumnFinder:
    """Finds columns by name, or by number from 1 if there are no names.

    Parameters
    ----------
    path : Path or str
        Named in errors.
    names : sequence of str or None
        Names of all columns.
    count : int
        Number of columns.
    """

    def __init__(self, path: Path | str, names: Sequence[str] | None, count: int) -> None:
        self.path, self.names, self.count = path, names, count
        self._index = {name: i for i, name in reversed(list(enumerate(names or ())))}

    def indices(self, columns: Sequence[str] | None) -> Sequence[int]:
        """Return the index of each column; None, or an empty sequence, stands for all."""
        return [self._find(c) for c in columns] if columns else range(self.count)

    def label(self, index: int) -> str:
        """What a user calls a column: its name, or its number if it has none."""
        return (self.names[index] if self.names else "") or str(index + 1)

    def shown(self, index: int) -> str:
        """What messages call a column."""
        return self.names[index] if self.names else f"number {index + 1}"

    def _find(self, column: str) -> int:
        if column in self._index:
            return self._index[column]
        number = int(column) if re.fullmatch(r"\d{1,18}", column, re.ASCII) else 0
        if 1 <= number <= self.count and not (self.names and self.names[number - 1]):
            return number - 1
        known = shortened(self.names) if self.names else f"1 to {self.count}"
        quoted = any("," in name for name in self.names or ())
        more = "; put names with commas between double quotes" if quoted else ""
        raise ValueError(f"{self.path}: columns: found {column!r}; there are {known}{more}")


def shortened(names: Sequence[str], most: int = 20) -> str:
    """List names for an error message: the first ones, and how many there are.

    >>> shortened(["a", "b", "c"]), shortened(["a", "b", "c"], most=2)
    ('a, b, c', 'a, b and 1 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def refuse_duplicates(path: Path | str, labels: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise `ValueError` if a wanted column is there twice, or is wanted twice."""
    found, chosen = Counter(labels), Counter(wanted)
    for label in wanted:
        if found[label] > 1 or chosen[label] > 1:
            raise ValueError(
                f"{path}: column {label} appears twice; give each column its own name, and "
                "choose it once"
            )
