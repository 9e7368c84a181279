"""Profiles of clusters: their means beside those of all rows, in words and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from lloydformer.app.jobs.fit.result import FitResult
from lloydformer.app.jobs.text_values import format_count, format_number, join_words

# Rows read at a time; bounds temporary memory.
_CHUNK = 1 << 16
# z-scores from which a mean is high or low, and very high or low; chosen by hand.
_STRIKING, _VERY = 0.5, 1.5


@dataclass(frozen=True)
class Trait:
    """A column of the points in one cluster: its mean there, its mean in all rows, its z-score.

    `category` is the word, if the column is 1 for the rows that have it.
    """

    column: str
    mean: float
    overall: float
    z: float
    category: str | None = None

    @property
    def words(self) -> str:
        """The trait as a part of a sentence."""
        if self.category is not None:
            name = self.column.removesuffix(f"={self.category}")
            return (
                f"{name} is {self.category} in {100 * self.mean:.0f}% of its rows "
                f"({100 * self.overall:.0f}% of all)"
            )
        very, side = "very " * (abs(self.z) >= _VERY), "high" if self.z > 0 else "low"
        return (
            f"{self.column} is {very}{side} ({format_number(self.mean, 3)}, mean of all "
            f"{format_number(self.overall, 3)})"
        )


@dataclass(frozen=True)
class ClusterProfile:
    """A cluster: its size, its traits with the most striking first, and its most typical row.

    `typical` is the row of points nearest to the center; None for an empty cluster.
    """

    number: int
    size: int
    share: float
    traits: tuple[Trait, ...]
    typical: int | None

    def sentence(self, most: int = 3) -> str:
        """Return the profile in words."""
        if not self.size:
            return "No rows."
        start = f"{format_count(self.size, 'row')} ({100 * self.share:.1f}%)"
        # That few rows have some word says little.
        traits = [t for t in self.traits if t.category is None or t.z > 0]
        striking = [t.words for t in traits[:most] if abs(t.z) >= _STRIKING]
        if not striking:
            return f"{start}; all columns are near the mean of all rows."
        return f"{start}: {join_words(striking)}."


class Profiles:
    """The profiles of all clusters, from one pass over the rows.

    Parameters
    ----------
    result : FitResult
        The fit.
    """

    def __init__(self, result: FitResult) -> None:
        self.result = result

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means of the clusters (k, d), means of all rows (d,), and their standard deviations."""
        points, assignment = self.result.blocks.points, self.result.assignment
        first = points[0].double()  # makes the moments of constant columns exact
        sums = torch.zeros(self.result.n_clusters, points.shape[1], dtype=torch.float64)
        squares = torch.zeros(points.shape[1], dtype=torch.float64)
        for start in range(0, len(points), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            part, clusters = points[chunk].double() - first, assignment.clusters[chunk].long()
            if assignment.left_out is not None:
                kept = ~assignment.left_out[chunk]
                part, clusters = part[kept], clusters[kept]
            sums.index_add_(0, clusters, part)
            squares += part.square().sum(dim=0)
        counts = torch.tensor(self.result.sizes, dtype=torch.float64)
        mean = sums.sum(dim=0) / counts.sum().clamp(min=1)
        spread = (squares / counts.sum().clamp(min=1) - mean.square()).clamp(min=0).sqrt()
        means = sums / counts.clamp(min=1)[:, None]
        return (means + first).numpy(), (mean + first).numpy(), spread.numpy()

    @cached_property
    def typical(self) -> dict[int, int]:
        """The row nearest to the center of each cluster."""
        clusters = self.result.assignment.clusters.long()
        distances = self.result.assignment.distances
        nearest = torch.full((self.result.n_clusters,), torch.inf, dtype=distances.dtype)
        nearest.scatter_reduce_(0, clusters, distances, reduce="amin")
        rows = torch.nonzero(distances == nearest[clusters])[:, 0]
        numbers, places = np.unique(clusters[rows].numpy(), return_index=True)
        return {int(j): int(rows[i]) for j, i in zip(numbers, places, strict=True)}

    def profile(self, number: int) -> ClusterProfile:
        """Return the profile of a cluster."""
        means, overall, spread = self._moments
        size = self.result.sizes[number]
        scores = (means[number] - overall) / np.where(spread > 0, spread, 1.0)
        scores[spread <= 1e-12 * np.abs(overall)] = 0.0  # a constant column, but for rounding
        names, words = self.result.columns, self.result.categories
        traits = tuple(
            Trait(names[i], float(means[number, i]), float(overall[i]), float(scores[i]), words[i])
            for i in np.argsort(-np.abs(scores), kind="stable")
        )
        share = size / max(self.result.blocks.n_rows, 1)
        typical = self.typical.get(number) if size else None
        return ClusterProfile(number, size, share, traits, typical)


class ShownRows:
    """Some rows as the table has them, with their numbers and names.

    Parameters
    ----------
    result : FitResult
        The fit.
    rows : sequence of int
        Rows of the points.
    """

    def __init__(self, result: FitResult, rows: Sequence[int]) -> None:
        self.result, self.rows = result, list(rows)
        self._places = dict(zip(self.rows, result.table_rows(self.rows), strict=True))
        self._names = self._read_names()

    def _read_names(self) -> dict[int, str] | None:
        """Read the names of the rows; None if no column has them."""
        table = self.result.table
        if table is None or table.id_column is None:
            return None
        wanted, names, start = np.unique(list(self._places.values())), dict[int, str](), 0
        for part in table.ids():
            for place in wanted[(wanted >= start) & (wanted < start + len(part))]:
                names[int(place)] = str(part[place - start])
            start += len(part)
        return names

    @property
    def columns(self) -> list[str]:
        """The names of the cells."""
        table = self.result.table
        names = [] if self._names is None or table is None else [str(table.id_column)]
        if table is None or all(f.categories is None for f in table.conversion.features):
            return ["row", *names, *self.result.columns]
        return ["row", *names, *(f.column for f in table.conversion.features)]

    def cells(self, row: int) -> list[str]:
        """Return the number of a row from 1, its name if it has one, and its values."""
        place, table = self._places[row], self.result.table
        cells = [str(place + 1), *([] if self._names is None else [self._names[place]])]
        values = iter(self.result.blocks.points[row].tolist())
        if table is None:
            return cells + [format_number(value) for value in values]
        for feature in table.conversion.features:
            if feature.categories is None:
                cells.append(format_number(next(values)))
            else:  # its columns of 0 and 1 become the word again
                ones = [next(values) for _ in feature.categories]
                cells.append(feature.categories[int(np.argmax(ones))])
        return cells
