"""What sets each cluster apart: its means beside those of all rows, in words and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from lloydformer.data.conversion import Feature
from lloydformer.data.opened import rows_in_table
from lloydformer.jobs.fit.result import FitResult
from lloydformer.jobs.fit.words import counted, listed, plain

_ROWS = 1 << 16
_STRIKING, _VERY = 0.5, 1.5
"""z-scores from which a mean is high or low, and very high or low."""


@dataclass(frozen=True)
class Trait:
    """A column of the points in one cluster: its mean there, its mean in all rows, its z-score."""

    column: str
    mean: float
    overall: float
    z: float
    category: str | None = None
    """The word, if the column is 1 for the rows that have it."""

    @property
    def words(self) -> str:
        if self.category is not None:
            name = self.column.removesuffix(f"={self.category}")
            return (f"{name} is {self.category} in {100 * self.mean:.0f}% of its rows "
                    f"({100 * self.overall:.0f}% of all)")  # fmt: skip
        very = "very " if abs(self.z) >= _VERY else ""
        return (f"{self.column} is {very}{'high' if self.z > 0 else 'low'} ({plain(self.mean, 3)}, "
                f"mean of all {plain(self.overall, 3)})")  # fmt: skip


@dataclass(frozen=True)
class ClusterProfile:
    """A cluster: its size, its traits with the most striking first, and its most typical row."""

    number: int
    size: int
    share: float
    traits: tuple[Trait, ...]
    typical: int | None
    """The row of points nearest to the center; None for an empty cluster."""

    def sentence(self, most: int = 3) -> str:
        """The profile in words."""
        start = f"{counted(self.size, 'row')} ({100 * self.share:.1f}%)"
        told = [t for t in self.traits if t.category is None or t.z > 0]  # not what it is not
        striking = [t.words for t in told[:most] if abs(t.z) >= _STRIKING]
        if not self.size:
            return "No rows."
        if not striking:
            return f"{start}; all columns are near the mean of all rows."
        return f"{start}: {listed(striking)}."


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
        points, k = self.result.blocks.points, self.result.n_clusters
        first = points[0].double()  # makes the moments of constant columns exact
        sums = torch.zeros(k, points.shape[1], dtype=torch.float64)
        squares = torch.zeros(points.shape[1], dtype=torch.float64)
        for start in range(0, len(points), _ROWS):
            part = points[start : start + _ROWS].double() - first
            clusters, kept = self._kept(start, len(part))
            sums.index_add_(0, clusters[kept], part[kept])
            squares += part[kept].square().sum(dim=0)
        counts = torch.tensor(self.result.sizes, dtype=torch.float64)
        mean = sums.sum(dim=0) / counts.sum().clamp(min=1)
        spread = (squares / counts.sum().clamp(min=1) - mean.square()).clamp(min=0).sqrt()
        means = sums / counts.clamp(min=1)[:, None]
        return (means + first).numpy(), (mean + first).numpy(), spread.numpy()

    def _kept(self, start: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        own = slice(start, start + count)
        out = self.result.assignment.left_out
        kept = torch.ones(count, dtype=torch.bool) if out is None else ~out[own]
        return self.result.assignment.clusters[own].long(), kept

    @cached_property
    def typical(self) -> dict[int, int]:
        """The row nearest to the center of each cluster."""
        clusters, away = self.result.assignment.clusters.long(), self.result.assignment.distances
        nearest = torch.full((self.result.n_clusters,), torch.inf, dtype=away.dtype)
        nearest.scatter_reduce_(0, clusters, away, reduce="amin")
        rows = torch.nonzero(away == nearest[clusters])[:, 0]
        found, places = np.unique(clusters[rows].numpy(), return_index=True)
        return {int(j): int(rows[i]) for j, i in zip(found, places, strict=True)}

    def profile(self, number: int) -> ClusterProfile:
        """The profile of a cluster."""
        means, overall, spread = self._moments
        size = self.result.sizes[number]
        scores = (means[number] - overall) / np.where(spread > 0, spread, 1.0)
        scores[spread <= 1e-12 * np.abs(overall)] = 0.0
        names, words = self.result.columns, categories(self.result)
        traits = [Trait(names[i], float(means[number, i]), float(overall[i]), float(scores[i]),
                        words[i]) for i in np.argsort(-np.abs(scores), kind="stable")]  # fmt: skip
        return ClusterProfile(
            number, size, size / max(self.result.blocks.n_rows, 1), tuple(traits),
            self.typical.get(number) if size else None,
        )  # fmt: skip


def categories(result: FitResult) -> list[str | None]:
    """The word that each column of the points stands for; None for columns of numbers."""
    if result.table is None:
        return [None] * len(result.columns)
    return [word for f in result.table.conversion.features for word in f.categories or (None,)]


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
        self.result, self.rows, table = result, list(rows), result.table
        dropped = np.empty(0, dtype=np.int64) if table is None else table.dropped
        self._places = rows_in_table(np.array(self.rows, dtype=np.int64), dropped)
        self._ids = None if table is None or table.id_column is None else self._read_ids()

    @property
    def columns(self) -> list[str]:
        """The names of the cells."""
        table = self.result.table
        named = [] if self._ids is None or table is None else [str(table.id_column)]
        if table is None or all(f.categories is None for f in table.conversion.features):
            return ["row", *named, *self.result.columns]
        return ["row", *named, *(f.column for f in table.conversion.features)]

    def cells(self, row: int) -> list[str]:
        """The number of a row from 1, its name if it has one, and its values."""
        place = int(self._places[self.rows.index(row)])
        names = [] if self._ids is None else [self._ids[place]]
        values = self.result.blocks.points[row].tolist()
        return [str(place + 1), *names, *self._values(values)]

    def _values(self, values: list[float]) -> list[str]:
        table = self.result.table
        if table is None:
            return [plain(value) for value in values]
        shown: list[str] = []
        for feature in table.conversion.features:
            own, values = _cut(values, feature)
            shown.append(plain(own[0]) if feature.categories is None
                         else feature.categories[int(np.argmax(own))])  # fmt: skip
        return shown

    def _read_ids(self) -> dict[int, str]:
        table = self.result.table
        assert table is not None
        wanted, found, start = np.unique(self._places), {}, 0
        for part in table.ids():
            for place in wanted[(wanted >= start) & (wanted < start + len(part))]:
                found[int(place)] = str(part[place - start])
            start += len(part)
        return found


def _cut(values: list[float], feature: Feature) -> tuple[list[float], list[float]]:
    width = 1 if feature.categories is None else len(feature.categories)
    return values[:width], values[width:]
