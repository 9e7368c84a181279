"""Problems for the study of the number of clusters: planted clusters, noise, sets with classes.

Each planted problem is drawn from its own number and a family of seeds. Thresholds of the package
are chosen on the family `tune`, results are those of `report`, so no result is of a problem that a
threshold was fitted to.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from planted import PLANTED
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

Rng = np.random.Generator

FAMILIES = {"tune": 1, "report": 2}
MOST_CLUSTERS = 20
# How far neighbouring clusters are apart: distance of their centers over the sum of their standard
# deviations along the line between them. Two normal clusters have one top below 1; at 1.7 the
# density in the middle is 0.47 of that of the centers, at 4 it is 0.0007.
OVERLAPS = {"none": 4.0, "little": 3.0, "some": 2.2, "much": 1.7}
# The right k of k-means must be that of the problem. So clusters are moved apart by 10 % until
# k-means that starts from them keeps them, with this adjusted Rand index: that of two clusters at
# 1.7. In many columns a cluster has many neighbours, and noise columns hide clusters; if moving
# does not help, there are fewer noise columns.
KEPT = 0.8
SIZES = ("equal", "uneven", "very uneven")
COLUMNS = (2, 3, 4, 6, 10, 20, 40)
# Real sets: at most so many rows and columns, so that the gap statistic takes seconds.
MOST_ROWS, MOST_COLUMNS = 1000, 120


@dataclass(frozen=True)
class Problem:
    """Rows, the cluster of each, and how they were made.

    Attributes
    ----------
    kind : str
        "planted", "published", "noise" or "real".
    X, y : array
        The rows, and their clusters or classes.
    facts : dict
        What is varied, by name.
    """

    kind: str
    X: np.ndarray
    y: np.ndarray
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """The right number of clusters."""
        return len(np.unique(self.y))


def _unit_ball(rng: Rng, n: int, d: int) -> np.ndarray:
    """Rows that are uniform in a ball, with standard deviation 1 in each column."""
    rows = rng.normal(size=(n, d))
    radii = rng.random(n) ** (1 / d) * np.sqrt(d + 2)
    return rows * (radii / np.linalg.norm(rows, axis=1))[:, None]


# Rows of one cluster with mean 0 and, but for "widths" and "long", covariance 1.
SHAPES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "round": lambda rng, n, d: rng.normal(size=(n, d)),
    "widths": lambda rng, n, d: rng.normal(size=(n, d)),
    "long": lambda rng, n, d: rng.normal(size=(n, d)),
    "ball": _unit_ball,
    "box": lambda rng, n, d: rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, d)),
    "tails": lambda rng, n, d: rng.standard_t(5, size=(n, d)) / np.sqrt(5 / 3),
    "skewed": lambda rng, n, d: (rng.gamma(4, size=(n, d)) - 4) / 2,
}


def _draw_axes(rng: Rng, shape: str, d: int) -> np.ndarray:
    """Return the matrix that a cluster's rows are multiplied by."""
    if shape == "widths":
        return np.eye(d) * 2 ** rng.uniform(-1, 1)
    if shape == "long":  # the longest axis is up to four times the shortest
        turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
        return 2 ** rng.uniform(-1, 1, size=d)[:, None] * turn
    return np.eye(d)


def _place_centers(rng: Rng, axes: list[np.ndarray], apart: float) -> np.ndarray:
    """Draw centers in a box that is just large enough for all clusters to be apart."""
    d = len(axes[0])
    side, centers = apart, list[np.ndarray]()

    def is_free(center: np.ndarray, own: np.ndarray) -> bool:
        for other, of_other in zip(centers, axes, strict=False):
            length = np.linalg.norm(center - other)
            line = (center - other) / max(length, 1e-9)
            widths = np.linalg.norm(own @ line) + np.linalg.norm(of_other @ line)
            if length < apart * widths:
                return False
        return True

    while len(centers) < len(axes):
        for _ in range(30):
            center = rng.uniform(0, side, size=d)
            if is_free(center, axes[len(centers)]):
                centers.append(center)
                break
        else:
            side *= 1.1
    return np.stack(centers)


def _share_kept(X: np.ndarray, y: np.ndarray) -> float:
    """Return the adjusted Rand index of k-means that starts from the planted clusters."""
    X = StandardScaler().fit_transform(X)
    means = np.stack([X[y == j].mean(axis=0) for j in range(y[-1] + 1)])
    return float(adjusted_rand_score(y, KMeans(len(means), init=means).fit(X).labels_))


def draw_planted(family: str, number: int) -> Problem:
    """Return a planted problem: k is 1 to 20, each as often; everything else is drawn."""
    rng = np.random.default_rng([38, FAMILIES[family], number])
    k, d = 1 + number % MOST_CLUSTERS, int(rng.choice(COLUMNS))
    shape, sizes = str(rng.choice(list(SHAPES))), str(rng.choice(SIZES))
    overlap = str(rng.choice(list(OVERLAPS)))
    n = int(np.clip(k * np.exp(rng.uniform(np.log(25), np.log(100))), 150, 1800))
    spread = {"equal": 1.0, "uneven": 2.0, "very uneven": 8.0}[sizes]
    shares = spread ** rng.random(k)  # the largest is up to `spread` times the smallest
    counts = np.maximum(12, np.round(shares / shares.sum() * n)).astype(int)
    axes = [_draw_axes(rng, shape, d) for _ in range(k)]
    n_noise = max(1, d // 4) if rng.random() < 1 / 3 else 0
    widths = 2 ** rng.uniform(-1, 1, size=n_noise)  # as wide as a cluster, within a factor of two
    y, apart, kept = np.repeat(np.arange(k), counts), OVERLAPS[overlap], 0.0
    while kept < KEPT:
        if apart > 2 * OVERLAPS[overlap]:  # as wide as all clusters, noise hides any clusters
            widths, apart = widths[: len(widths) // 2], OVERLAPS[overlap]
        centers = _place_centers(rng, axes, apart)
        parts = [
            center + SHAPES[shape](rng, count, d) @ own
            for center, own, count in zip(centers, axes, counts, strict=True)
        ]
        noise = rng.normal(size=(len(y), len(widths))) * widths
        X, apart = np.hstack([np.concatenate(parts), noise]), 1.1 * apart
        kept = _share_kept(X, y)
    units = str(rng.choice(["one", "several", "logarithms"], p=[0.6, 0.3, 0.1]))
    if units == "several":
        X = X * 10 ** rng.uniform(-2, 3, size=X.shape[1]) + 10 ** rng.uniform(0, 3)
    if units == "logarithms":  # amounts, so that each column has a long tail
        X = np.exp(1.5 * (X - X.mean(axis=0)) / X.std(axis=0))
    order = rng.permutation(len(X))
    facts = {
        "clusters": "1" if k == 1 else "2 to 5" if k <= 5 else "6 to 12" if k <= 12 else "13 to 20",
        "columns": "2 to 4" if d <= 4 else "6 to 10" if d <= 10 else "20 to 40",
        "shape": shape,
        "sizes": sizes,
        "overlap": overlap,
        "noise columns": "some" if len(widths) else "none",
        "units": units,
    }
    return Problem("planted", X[order], y[order], facts)


def _correlated(rng: Rng, rows: np.ndarray) -> np.ndarray:
    d = rows.shape[1]
    return rows @ rng.normal(size=(d, d + 1))[:, :d]


def _mixed_columns(rng: Rng, n: int, d: int) -> np.ndarray:
    """Columns of several distributions."""
    draws = (rng.normal, rng.random, rng.standard_exponential)
    return np.column_stack([draws[i % 3](size=n) for i in range(d)])


def _bent(rng: Rng, n: int, d: int) -> np.ndarray:
    """A normal group along a parabola."""
    rows = rng.normal(size=(n, d))
    rows[:, -1] = 0.5 * rows[:, -1] + 0.5 * rows[:, 0] ** 2 * (d > 1)
    return rows


# One group each, without a gap.
NOISE: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "normal, correlated": lambda rng, n, d: _correlated(rng, rng.normal(size=(n, d))),
    "normal, long": lambda rng, n, d: rng.normal(size=(n, d)) * np.geomspace(10, 1, d),
    "uniform": lambda rng, n, d: rng.random(size=(n, d)),
    "uniform, correlated": lambda rng, n, d: _correlated(rng, rng.random(size=(n, d))),
    "uniform, ball": _unit_ball,
    "triangular": lambda rng, n, d: rng.triangular(0, 0.3, 1, size=(n, d)),
    "t with 3 degrees": lambda rng, n, d: rng.standard_t(3, size=(n, d)),
    "t of all columns": lambda rng, n, d: (
        rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(4, size=(n, 1)) / 4)
    ),
    "Laplace": lambda rng, n, d: rng.laplace(size=(n, d)),
    "gamma": lambda rng, n, d: rng.gamma(2, size=(n, d)),
    "exponential": lambda rng, n, d: rng.standard_exponential(size=(n, d)),
    "lognormal": lambda rng, n, d: np.exp(rng.normal(size=(n, d))),
    "ratings": lambda rng, n, d: np.clip(np.round(rng.normal(3, 1, size=(n, d))), 1, 5),
    "mixed columns": _mixed_columns,
    "bent": _bent,
}


def draw_noise(family: str, number: int) -> Problem:
    """Return a set of one group; kinds take turns."""
    rng = np.random.default_rng([39, FAMILIES[family], number])
    name = list(NOISE)[number % len(NOISE)]
    d = int(rng.choice([1, 2, 3, 5, 10, 20]))
    n = int(np.exp(rng.uniform(np.log(100), np.log(1500))))
    facts = {"distribution": name, "columns": str(d)}
    return Problem("noise", NOISE[name](rng, n, d), np.zeros(n, dtype=int), facts)


def read_real(folder: Path) -> Iterator[tuple[str, Problem]]:
    """Yield the sets with 2 to 20 classes, at most `MOST_ROWS` rows of each."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            if "y" not in file or file["X"].shape[1] > MOST_COLUMNS:
                continue
            X, y = file["X"].astype(np.float64), file["y"]
        if len(X) > MOST_ROWS:
            rows = np.random.default_rng(0).choice(len(X), MOST_ROWS, replace=False)
            X, y = X[rows], y[rows]
        if 2 <= len(np.unique(y)) <= MOST_CLUSTERS:
            yield path.stem, Problem("real", X, y)


def all_problems(
    family: str, planted: int, noise: int, real: Path | None
) -> Iterator[tuple[str, Problem]]:
    """Yield the problems with their names.

    The published sets (planted.py) and the real ones are in `report` only: there is one of each.
    """
    for number in range(planted):
        yield f"planted {number}", draw_planted(family, number)
    for number in range(noise):
        yield f"noise {number}", draw_noise(family, number)
    if family == "tune":
        return
    for name, make in PLANTED.items():
        X, middles = make()
        if len(middles) <= MOST_CLUSTERS:
            y = ((X[:, None] - middles) ** 2).sum(axis=2).argmin(axis=1)
            yield name, Problem("published", X, y)
    if real is not None:
        yield from read_real(real)
