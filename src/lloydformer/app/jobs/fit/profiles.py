"""Profiles of clusters: their means beside those of all rows, in words and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

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

    `category` is the word, if the column is 1 for the rows that have it; `other` the word of the
    rows with 0, if there are only these two.
    """

    column: str
    mean: float
    overall: float
    z: float
    category: str | None = None
    other: str | None = None

    @property
    def words(self) -> str:
        """The trait as a part of a sentence."""
        if self.category is not None:
            name = self.column.removesuffix(f"={self.category}")
            word, mean, overall = self.category, self.mean, self.overall
            if self.other is not None and self.z < 0:
                word, mean, overall = self.other, 1 - mean, 1 - overall
            return (
                f"{name} is {word} in {100 * mean:.0f}% of its rows ({100 * overall:.0f}% of all)"
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
        traits = [t for t in self.traits if t.category is None or t.z > 0 or t.other]
        striking = [t.words for t in traits[:most] if abs(t.z) >= _STRIKING]
        if not striking:
            return f"{start}; all columns are near the mean of all rows."
        return f"{start}: {join_words(striking)}."


def profile_clusters(result: FitResult, numbers: Sequence[int]) -> list[ClusterProfile]:
    """Return the profiles of some clusters, from one pass over the rows."""
    means, overall, spread = _compute_moments(result)
    scores = (means - overall) / np.where(spread > 0, spread, 1.0)
    scores[:, spread <= 1e-12 * np.abs(overall)] = 0.0  # a constant column, but for rounding
    # The first row of each cluster in the order of distances is the nearest to its center.
    order = result.assignment.distances.argsort(stable=True)
    present, first = np.unique(result.assignment.clusters[order].numpy(), return_index=True)
    typical = dict(zip(present.tolist(), order[torch.from_numpy(first)].tolist(), strict=True))
    names, words, others = result.columns, result.categories, _other_words(result)
    profiles = []
    for j in numbers:
        size, columns = result.totals.sizes[j], np.argsort(-np.abs(scores[j]), kind="stable")
        traits = (
            Trait(
                *(names[i], float(means[j, i]), float(overall[i]), float(scores[j, i])),
                *(words[i], others.get(i)),
            )
            for i in columns
        )
        share, nearest = size / max(result.blocks.n_rows, 1), typical.get(j) if size else None
        profiles.append(ClusterProfile(j, size, share, tuple(traits), nearest))
    return profiles


def _other_words(result: FitResult) -> dict[int, str]:
    """Return the word that 0 means in the columns that stand for two words, by their numbers."""
    features = result.table.conversion.features
    starts = np.cumsum([0, *(feature.width for feature in features)]).tolist()
    pairs = zip(starts, features, strict=False)
    return {start: f.categories[0] for start, f in pairs if f.is_single and f.categories}


def _compute_moments(result: FitResult) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return means of the clusters (k, d), means of all rows (d,), and standard deviations (d,)."""
    points, assignment = result.blocks.points, result.assignment
    first = points[0].double()  # makes the moments of constant columns exact
    # Not the centers, which are no means of their rows for medoids and soft k-means.
    sums = torch.zeros(result.n_clusters, points.shape[1], dtype=torch.float64)
    squares = torch.zeros(points.shape[1], dtype=torch.float64)
    for start in range(0, len(points), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        part, clusters = points[chunk].double() - first, assignment.clusters[chunk].long()
        if assignment.left_out is not None:
            kept = ~assignment.left_out[chunk]
            part, clusters = part[kept], clusters[kept]
        sums.index_add_(0, clusters, part)
        squares += part.square().sum(dim=0)
    counts = torch.tensor(result.totals.sizes, dtype=torch.float64)
    mean = sums.sum(dim=0) / counts.sum().clamp(min=1)
    spread = (squares / counts.sum().clamp(min=1) - mean.square()).clamp(min=0).sqrt()
    means = sums / counts.clamp(min=1)[:, None]
    return (means + first).numpy(), (mean + first).numpy(), spread.numpy()


def show_rows(result: FitResult, rows: Sequence[int]) -> tuple[list[str], list[list[str]]]:
    """Return columns and cells of some rows of points, as the table has them.

    The first cells are the number of a row, from 1, and its name if a column has names of rows.
    """
    table, features, names = result.table, result.table.conversion.features, dict[int, str]()
    places = result.table_rows(rows)
    columns = ["row"]
    if table.id_column is not None:
        columns.append(table.id_column)
        wanted, start = np.unique(places), 0
        for part in table.ids():
            for place in wanted[(wanted >= start) & (wanted < start + len(part))]:
                names[int(place)] = str(part[place - start])
            start += len(part)
    has_words = any(feature.categories is not None for feature in features)
    columns += [feature.column for feature in features] if has_words else result.columns
    table_cells = []
    for row, place in zip(rows, places, strict=True):
        cells = [str(place + 1), *([names[place]] if names else [])]
        values = iter(result.blocks.points[row].tolist())
        for feature in features:
            if feature.categories is None:
                cells.append(format_number(next(values)))
            else:  # its columns of 0 and 1 become the word again
                cells.append(feature.read_word([next(values) for _ in feature.words]))
        table_cells.append(cells)
    return columns, table_cells
