"""The number of clusters that `fit` chooses by default, and how sure it is that there are any."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float

from lloydformer.app.jobs.fit.valleys import likely_pairs, pair_evidence
from lloydformer.estimators.relocating import RelocatingKMeans
from lloydformer.profiles.sample import Sample, silhouettes

# Numbers of clusters that are tried by default: 1 to 20, with at least four rows for each.
MOST_CLUSTERS = 20
_ROWS_EACH = 4
# Below this number of rows nothing can be said.
_FEWEST_ROWS = 8
# Rows and numbers that are used of the sample, so that wide tables take seconds as well.
_WIDE_ROWS, _MOST_NUMBERS = 500, 400_000
# Larger numbers are not tested for valleys: there are too few rows of the sample in each cluster,
# and time grows with k^3.
_MOST_TESTED = 64
# Each fit is tested on rows that it has not seen: a fifth of the sample, five times.
_FOLDS = 5
# There are clusters if for some k the log likelihood ratios of its most likely valleys have at
# least this sum. Of 200 sets of noise of `tune` in benchmarks/choose_k.py it is larger in 6: in 4
# of 12 sets of ratings, whose few values have gaps between them, and in 2 of 188 others. Of 133
# problems with several clusters it is smaller in 3; above 3 it would be in 8.
_SUPPORT = 1.0
# Weights of the score, of a logistic model of the right k on planted problems, rounded. On those of
# `tune` in benchmarks/choose_k.py no other weights are better, and neither are more terms: evidence
# of valleys, the gain before k, k itself (cross-validated).
_WEAKEST, _SILHOUETTE, _GAIN = 8.0, 5.0, 1.2

Level = Literal["clear", "some", "none"]


@dataclass(frozen=True)
class Evidence:
    """Evidence that rows form clusters, and its strength.

    Attributes
    ----------
    level : {"clear", "some", "none"}
        "clear": there is a valley between any two neighbouring clusters of the fit. "some": there
        are clusters, but not all of these are apart. "none": the rows look like one group.
    n_clusters : int
        Number of clusters of the fit.
    weakest_pair, support : float
        Log likelihood ratios of a valley to none: of the pair of clusters that is least apart, and
        the sum over the pairs that have a valley in the rows of the fit. 0 for one cluster.
    n_rows : int
        Number of rows that were tested.
    """

    level: Level
    n_clusters: int
    weakest_pair: float
    support: float
    n_rows: int

    @property
    def sentence(self) -> str:
        """The level in plain words."""
        if self.n_rows < _FEWEST_ROWS:
            return "No evidence of clusters: there are too few rows to tell."
        if self.level == "none":
            many = f"; the {self.n_clusters} clusters divide it" if self.n_clusters > 1 else ""
            return f"No evidence of clusters: the rows look like one group without gaps{many}."
        if self.level == "some" and self.n_clusters == 1:
            return "Some evidence of clusters: the rows look like more than one group."
        if self.level == "some":
            return (
                "Some evidence of clusters: the rows are not one group, but between some of these "
                f"{self.n_clusters} clusters there is no clear gap."
            )
        return (
            "Clear evidence of clusters: between any two neighbouring clusters rows are fewer "
            "than around their centers."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the evidence for summary.json."""
        return {
            "level": self.level,
            "sentence": self.sentence,
            "weakest_pair": self.weakest_pair,
            "support": self.support,
            "rows": self.n_rows,
        }


@dataclass(frozen=True)
class FittedK:
    """K-means of the sample with one number of clusters.

    Attributes
    ----------
    model : RelocatingKMeans
        The fit of all rows of the sample.
    silhouette : float
        Mean silhouette; 0 for one cluster.
    weakest : float
        Smallest mean of 1 - (distance to the own center) / (distance to the second) in a cluster.
    smallest : float
        Size of the smallest cluster as a share of the mean size.
    held_out : float
        Sum of squared distances of rows that were left out of a fit to its centers.
    fold_centers : tuple of array
        The centers of these fits.
    """

    model: RelocatingKMeans
    silhouette: float
    weakest: float
    smallest: float
    held_out: float
    fold_centers: tuple[Float[np.ndarray, "k d"], ...]


@dataclass(frozen=True)
class Valleys:
    """Log likelihood ratios of a valley to none, as in `Evidence`."""

    weakest_pair: float
    support: float

    @property
    def show_clusters(self) -> bool:
        """True if rows that the fits have not seen are in clusters."""
        return self.support >= _SUPPORT


class Trials:
    """Trials on a sample, each made when it is first asked for.

    Parameters
    ----------
    sample : Sample
        The rows.
    seed : int
        Seed of the fits and of the choice of rows that are left out.
    """

    def __init__(self, sample: Sample, seed: int) -> None:
        rng = np.random.default_rng(seed)
        points, self._distances, self._seed = sample.points.numpy(), sample.distances, seed
        most = max(_WIDE_ROWS, _MOST_NUMBERS // points.shape[1])
        if len(points) > most:
            rows = np.sort(rng.permutation(len(points))[:most])
            points, self._distances = points[rows], self._distances[rows][:, rows]
        points = points - points.mean(axis=0)  # squares lose no digits to the origin
        if points.shape[1] > len(points):  # turned, m rows have m coordinates
            left, scale, _ = np.linalg.svd(points, full_matrices=False)
            points = left * scale
        self._points = points
        fold = rng.permutation(np.arange(len(points)) % _FOLDS)
        self._folds = [(self._points[fold != f], self._points[fold == f]) for f in range(_FOLDS)]
        self._trials, self._valleys = dict[int, FittedK](), dict[int, Valleys]()

    @property
    def n_rows(self) -> int:
        """Number of rows that the trials use."""
        return len(self._points)

    def __getitem__(self, k: int) -> FittedK:
        if k not in self._trials:
            with warnings.catch_warnings(action="ignore"):  # of fits that the user did not ask for
                self._trials[k] = self._fit(k)
        return self._trials[k]

    def _fit(self, k: int) -> FittedK:
        def fit(points: np.ndarray) -> RelocatingKMeans:
            return RelocatingKMeans(min(k, len(points)), random_state=self._seed).fit(points)

        model, models = fit(self._points), [fit(seen) for seen, _ in self._folds]
        pairs = zip(models, self._folds, strict=True)
        held_out = -sum(own.score(rows) for own, (_, rows) in pairs if len(rows))
        centers = tuple(own.cluster_centers_ for own in models)
        if k == 1:
            return FittedK(model, 0.0, 0.0, 1.0, held_out, centers)
        labels = model.labels_
        sizes = np.bincount(labels, minlength=k)
        two = np.partition(model.transform(self._points), 1, axis=1)
        inside = 1 - two[:, 0] / np.maximum(two[:, 1], 1e-300)
        means = np.bincount(labels, inside, minlength=k) / np.maximum(sizes, 1)
        values = silhouettes(self._distances, torch.from_numpy(labels), k)
        smallest = float(sizes.min() * k / self.n_rows)
        return FittedK(model, float(values.mean()), float(means.min()), smallest, held_out, centers)

    def valleys(self, k: int) -> Valleys:
        """Return what rows that were left out of a fit say about its clusters.

        Sums over the folds: clusters of different folds are not the same if k is not right.
        """
        if k not in self._valleys:
            weakest, support = 0.0, 0.0
            for centers, (seen, rows) in zip(self[k].fold_centers, self._folds, strict=True):
                evidence = pair_evidence(rows, centers)
                weakest += np.nanmin(evidence)
                # The pairs are chosen on the rows of the fit, and counted on rows that it has not
                # seen: so the choice finds no valley where there is none, and pairs of clusters
                # that touch do not hide the gaps between others.
                pairs = likely_pairs(pair_evidence(seen, centers))
                support += sum(evidence[pair] for pair in pairs)
            self._valleys[k] = Valleys(float(weakest), float(support))
        return self._valleys[k]

    def scores(self, numbers: Sequence[int]) -> dict[int, float]:
        r"""Return the score of each number above 1; the largest is the best.

        $8\,w + 5\,s / s^* + \log m - 1.2 \sinh^{-1} (10 \log (e_k / e_{k + 1}))$, where w is the
        weakest cluster, s the silhouette, s* the best one, m the size of the smallest cluster as a
        share of the mean size, and e the error of rows that were left out of the fit: it should not
        fall further with one more cluster.
        """
        several = [k for k in numbers if k > 1]
        best = max((self[k].silhouette for k in several), default=0.0)
        # An error below 1e-12 of that of one cluster is a rounding error.
        least = 1e-12 * self[1].held_out + 1e-300

        def gain(k: int) -> float:
            """Return by how much the error falls with one more cluster, on a log scale."""
            more = self[k + 1].held_out if k < self.n_rows else 0.0
            return math.log((self[k].held_out + least) / (more + least))

        return {
            k: _WEAKEST * self[k].weakest
            + _SILHOUETTE * self[k].silhouette / max(best, 1e-3)
            + math.log(max(self[k].smallest, 1e-3))
            - _GAIN * math.asinh(10 * gain(k))
            for k in several
        }

    def choose(self, numbers: Sequence[int]) -> int:
        """Return the best number: 1, if it is among them and there is no evidence of clusters."""
        scores = self.scores(numbers)
        if not scores:
            return 1
        ranked = sorted(scores, key=lambda k: -scores[k])  # of equal scores the smaller number
        if 1 in numbers and not self.show_clusters(ranked):
            return 1
        return ranked[0]

    def show_clusters(self, numbers: Sequence[int]) -> bool:
        """Return True if there are clusters, whatever their number is; `numbers` are tried first.

        Any number may show it: with too few or too many clusters, some are cut in two.
        """
        if self.n_rows < _FEWEST_ROWS:
            return False
        others = default_numbers(self.n_rows)
        tried = dict.fromkeys([*numbers, *others])
        return any(self.valleys(k).show_clusters for k in tried if 1 < k <= _MOST_TESTED)

    def evidence(self, k: int) -> Evidence:
        """Return how sure it is that there are clusters, and that they are those of a fit."""
        is_tested = 1 < k <= _MOST_TESTED and self.n_rows >= _FEWEST_ROWS
        own = self.valleys(k) if is_tested else Valleys(0.0, 0.0)
        level: Level = "none"
        if self.show_clusters([k, *self._valleys]):
            level = "clear" if own.show_clusters and own.weakest_pair >= 0 else "some"
        return Evidence(level, k, own.weakest_pair, own.support, self.n_rows)


def default_numbers(n_rows: int | None = None) -> range:
    """Return the numbers that are tried for so many rows, if the user names none."""
    most = MOST_CLUSTERS if n_rows is None else min(MOST_CLUSTERS, n_rows // _ROWS_EACH)
    return range(1, max(1, most) + 1)
