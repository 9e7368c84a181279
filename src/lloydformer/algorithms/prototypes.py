"""K-prototypes by definition: means of numbers, counts of categories, one row at a time."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

Row = tuple[list[float], list[Any]]  # numbers and categories; None is a missing one that is ignored


@dataclass(frozen=True)
class Prototypes:
    """An iteration of k-prototypes (Huang, 1998); without numbers it is k-modes.

    The distance of a row is the squared distance of its numbers plus `gamma` for each category that
    differs. On ties the first center wins, and of equally common categories the first in order. A
    center without rows stays.

    Attributes
    ----------
    gamma : float
        What a category that differs counts.
    order : tuple of list
        The values of each category, in order.
    """

    gamma: float
    order: tuple[list[Any], ...]

    def cost(self, row: Row, center: Row) -> float:
        """Return the distance of a row to a center."""
        numbers = sum((x - c) ** 2 for x, c in zip(row[0], center[0], strict=True))
        pairs = zip(row[1], center[1], strict=True)
        return numbers + self.gamma * sum(x is not None and x != c for x, c in pairs)

    def assign(self, rows: list[Row], centers: list[Row]) -> list[int]:
        """Return the nearest center of each row."""
        return [int(np.argmin([self.cost(row, center) for center in centers])) for row in rows]

    def place(self, rows: list[Row], labels: list[int], centers: list[Row]) -> list[Row]:
        """Return the new centers."""
        new = []
        for j, (old_numbers, old_words) in enumerate(centers):
            own = [row for row, label in zip(rows, labels, strict=True) if label == j]
            if not own:
                new.append((old_numbers, old_words))
                continue
            numbers = [
                float(np.mean(column)) for column in zip(*(row[0] for row in own), strict=True)
            ]
            words = []
            for f, order in enumerate(self.order):
                counts = Counter(row[1][f] for row in own if row[1][f] is not None)
                most = max(counts.values(), default=0)
                found = [word for word in order if counts[word] == most] if most else []
                words.append(found[0] if found else old_words[f])
            new.append((numbers, words))
        return new

    def objective(self, rows: list[Row], centers: list[Row]) -> float:
        """Return the sum of the distances to the nearest centers."""
        return sum(min(self.cost(row, center) for center in centers) for row in rows)
