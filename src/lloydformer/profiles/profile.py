"""Profiles of clusters: the columns that set each one apart, and rows that are examples of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from lloydformer.profiles.clustering import Clustering
from lloydformer.profiles.other_columns import OtherColumn
from lloydformer.profiles.statistics import compute_statistics, share_of_words
from lloydformer.profiles.words import format_count, format_number, join_words

# z-scores from which a mean is high or low, and very high or low; chosen by hand.
STRIKING, _VERY = 0.5, 1.5
_TYPICAL = 3  # rows nearest to the center
_EDGE = 2  # rows on the border to another cluster


@dataclass(frozen=True)
class Trait:
    """A column in one cluster and in all rows.

    Attributes
    ----------
    column : str
        The name of the column.
    z : float
        The mean of the cluster less that of all rows, in standard deviations of all rows.
    mean, overall : float
        Means of the cluster and of all rows. For a word, the shares of rows that have it.
    quartiles, overall_quartiles : tuple of float
        Lower quartile, median and upper quartile of the cluster and of all rows.
    word : str or None
        The word, if the column is 1 for the rows that have it.
    source : OtherColumn or None
        The column, if it was not clustered.
    """

    column: str
    z: float
    mean: float
    overall: float
    quartiles: tuple[float, float, float] = (np.nan,) * 3
    overall_quartiles: tuple[float, float, float] = (np.nan,) * 3
    word: str | None = None
    source: OtherColumn | None = None

    def format(self, value: float) -> str:
        """Return a value of this column as text."""
        return format_number(value, 3) if self.source is None else self.source.format(value)

    def format_range(self, quartiles: tuple[float, float, float]) -> str:
        """Return the middle half of a cluster or of all rows, as "4.8 to 5.6"."""
        if any(map(np.isnan, quartiles)):
            return ""
        low, high = self.format(quartiles[0]), self.format(quartiles[2])
        return low if low == high else f"{low} to {high}"

    @property
    def value(self) -> str:
        """The median of the cluster as text; of a word, the share of rows that have it."""
        return self.format(self.quartiles[1]) if self.word is None else f"{100 * self.mean:.0f}%"

    @property
    def overall_value(self) -> str:
        """The value over all rows."""
        if self.word is not None:
            return f"{100 * self.overall:.0f}%"
        return self.format(self.overall_quartiles[1])

    @property
    def label(self) -> str:
        """The column; for a word, column and word."""
        return self.column if self.word is None else f"{self.column} = {self.word}"

    @property
    def words(self) -> str:
        """The trait as a part of a sentence."""
        if self.word is not None:
            shares = f"{self.value} of its rows ({self.overall_value} of all)"
            return f"{self.column} is {self.word} in {shares}"
        low, high = ("early", "late") if self.source and self.source.is_date else ("low", "high")
        very, side = "very " * (abs(self.z) >= _VERY), high if self.z > 0 else low
        own, all_rows = self.quartiles[1], self.overall_quartiles[1]
        if (own - all_rows) * self.z > 0:
            numbers = f"median {self.value}, of all rows {self.overall_value}"
        else:  # mostly zeros, for example: medians do not show what the means do
            numbers = f"mean {self.format(self.mean)}, of all rows {self.format(self.overall)}"
        return f"{very}{side} {self.column} ({numbers})"


@dataclass(frozen=True)
class Example:
    """A row that shows what a cluster is like.

    `kind` is "typical" for a row near the center and "edge" for one nearly as near to another
    center, that of the cluster `neighbour`.
    """

    row: int
    kind: str
    neighbour: int | None = None


@dataclass(frozen=True)
class ClusterProfile:
    """A cluster: its size, its traits with the most striking first, and example rows.

    Attributes
    ----------
    number : int
        The number of the cluster.
    name : str
        Its number, and the name that the user gave it.
    size : int
        Its rows, without those left out.
    share : float
        Its share of all rows, by weight.
    silhouette : float or None
        The mean silhouette of its rows in the sample.
    traits : tuple of Trait
        The columns that were clustered.
    others : tuple of Trait
        Columns that were not clustered.
    examples : tuple of Example
        The rows nearest to the center, nearest first, then rows at the edge.
    """

    number: int
    name: str
    size: int
    share: float
    silhouette: float | None
    traits: tuple[Trait, ...]
    others: tuple[Trait, ...]
    examples: tuple[Example, ...]

    @property
    def typical(self) -> int | None:
        """The row nearest to the center; None for an empty cluster."""
        return self.examples[0].row if self.examples else None

    def sentence(self, most: int = 3) -> str:
        """Return the profile in words."""
        if not self.size:
            return "No rows."
        start = f"{format_count(self.size, 'row')} ({100 * self.share:.1f}%)"
        striking = [trait.words for trait in self.traits if _is_striking(trait)]
        text = f"{start}: {join_words(striking[:most])}." if striking else self._ranges(start, most)
        others = [trait.words for trait in self.others if _is_striking(trait)]
        return f"{text} Not clustered: {join_words(others[:most])}." if others else text

    def _ranges(self, start: str, most: int) -> str:
        """Return a sentence of a cluster in the middle: where its rows are."""
        # First the columns in which it is narrowest, compared with all rows.
        numbers = [trait for trait in self.traits if trait.word is None]
        numbers.sort(key=lambda trait: (_width_ratio(trait), -abs(trait.z)))
        ranges = [f"{t.column} {t.format_range(t.quartiles)}" for t in numbers[:most]]
        if not ranges:
            return f"{start}: its words are as frequent as in all rows."
        half = "half of its rows have" if self.size > 1 else "it has"
        return f"{start}, near the middle of the data in every column: {half} {join_words(ranges)}."


def _is_striking(trait: Trait) -> bool:
    # That few rows have some word says little.
    return abs(trait.z) >= STRIKING and (trait.word is None or trait.z > 0)


def _width_ratio(trait: Trait) -> float:
    """Return how narrow the middle half of a cluster is: 1 if it is as wide as that of all rows."""
    own = trait.quartiles[2] - trait.quartiles[0]
    overall = trait.overall_quartiles[2] - trait.overall_quartiles[0]
    return own / overall if overall > 0 else 1.0


def profile_clusters(
    clustering: Clustering, numbers: Sequence[int] | None = None
) -> list[ClusterProfile]:
    """Return the profiles of some clusters; of all by default."""
    numbers = range(clustering.n_clusters) if numbers is None else numbers
    statistics, others = clustering.statistics, _other_traits(clustering)
    names = [clustering.columns[i] for i in statistics.chosen]
    words = [clustering.categories[i] for i in statistics.chosen]
    examples, scores = _examples(clustering, numbers), statistics.scores
    profiles = []
    for j in numbers:
        traits = tuple(
            _say_by_word(
                Trait(
                    names[i] if words[i] is None else names[i].removesuffix(f"={words[i]}"),
                    float(scores[j, i]),
                    float(statistics.means[j, i]),
                    float(statistics.overall[i]),
                    tuple(statistics.quartiles[:, j, i].tolist()),
                    tuple(statistics.overall_quartiles[:, i].tolist()),
                    words[i],
                ),
                clustering.opposites.get(int(statistics.chosen[i])),
            )
            for i in np.argsort(-np.abs(scores[j]), kind="stable").tolist()
        )
        profiles.append(
            ClusterProfile(
                j,
                clustering.name(j),
                clustering.totals.sizes[j],
                clustering.shares[j],
                clustering.cluster_silhouettes[j],
                traits,
                others[j],
                examples[j],
            )
        )
    return profiles


def _say_by_word(trait: Trait, other: str | None) -> Trait:
    """Return a trait by the one of two words that the cluster has more often than all rows."""
    if other is None or trait.z >= 0:
        return trait
    low, middle, high = (1 - value for value in reversed(trait.quartiles))
    of_all = tuple(1 - value for value in reversed(trait.overall_quartiles))
    return replace(
        trait,
        z=-trait.z,
        mean=1 - trait.mean,
        overall=1 - trait.overall,
        quartiles=(low, middle, high),
        overall_quartiles=(of_all[0], of_all[1], of_all[2]),
        word=other,
    )


def _other_traits(clustering: Clustering) -> list[tuple[Trait, ...]]:
    """Return the traits of columns that were not clustered, for each cluster, most striking first.

    Of the words of a column, each cluster has the one that is most frequent there compared with
    all rows.
    """
    k, clusters = clustering.n_clusters, clustering.kept_clusters
    found: list[list[Trait]] = [[] for _ in range(k)]
    mass = np.ones(len(clusters)) if clustering.weights is None else clustering.weights
    for column in clustering.others:
        if column.words is None:
            values = torch.from_numpy(column.values)[:, None]
            own = compute_statistics(values, clusters, k, clustering.weights, clustering.seed)
            for j in range(k):
                found[j].append(
                    Trait(
                        column.name,
                        float(own.scores[j, 0]),
                        float(own.means[j, 0]),
                        float(own.overall[0]),
                        tuple(own.quartiles[:, j, 0].tolist()),
                        tuple(own.overall_quartiles[:, 0].tolist()),
                        source=column,
                    )
                )
            continue
        shares, overall = share_of_words(column.values, len(column.words), clusters, k, mass)
        # z-scores of columns of 0 and 1: their spread is sqrt(p (1 - p)).
        spread = np.sqrt(overall * (1 - overall))
        scores = (shares - overall) / np.where(spread > 0, spread, 1.0)
        for j in range(k):
            best = int(scores[j].argmax())
            z, share = float(scores[j, best]), float(shares[j, best])
            word = column.words[best]
            found[j].append(Trait(column.name, z, share, float(overall[best]), word=word))
    return [tuple(sorted(traits, key=lambda trait: -abs(trait.z))) for traits in found]


def _examples(clustering: Clustering, numbers: Sequence[int]) -> dict[int, tuple[Example, ...]]:
    """Return the rows nearest to each center, and rows of the sample at its edge."""
    clusters = clustering.kept_clusters
    distances = clustering.assignment.distances.cpu().numpy()
    order = np.lexsort((distances, clusters))
    starts = np.searchsorted(clusters[order], numbers)
    ends = np.searchsorted(clusters[order], numbers, side="right")
    edges = _edge_rows(clustering)
    found = {}
    for j, start, end in zip(numbers, starts, ends, strict=True):
        nearest = order[start : min(start + _TYPICAL, end)].tolist()
        typical = [Example(row, "typical") for row in nearest]
        pairs = [pair for pair in edges.get(j, []) if pair[0] not in nearest][:_EDGE]
        found[j] = (*typical, *(Example(row, "edge", other) for row, other in pairs))
    return found


def _edge_rows(clustering: Clustering) -> dict[int, list[tuple[int, int]]]:
    """Return rows of the sample and the clusters that they are nearly in, nearest first."""
    if clustering.n_clusters < 2:
        return {}
    rows, points = clustering.sample.rows, clustering.sample.points
    p = 1.0 if getattr(clustering.model, "metric", None) == "manhattan" else 2.0
    distances = torch.cdist(points, clustering.centers, p=p)
    labels = clustering.assignment.clusters[rows].long()[:, None]
    own = distances.gather(1, labels)[:, 0]
    nearest, other = distances.scatter(1, labels, torch.inf).min(dim=1)
    # How far the row is on its way from its own center (0) to the border (1).
    ratio = own / nearest.clamp(min=1e-300)
    found: dict[int, list[tuple[int, int]]] = {}
    for i in ratio.argsort(descending=True, stable=True).tolist():
        if clustering.kept_sample[i]:
            cluster, pair = int(labels[i]), (int(rows[i]), int(other[i]))
            found.setdefault(cluster, []).append(pair)
    return found
