"""Problems with a planted answer, after published descriptions, and the centroid index.

Fränti and Sieranoja (2018), "K-means properties on six clustering benchmark datasets": S1 to S4 are
5,000 points in 15 clusters that overlap more and more, A1 to A3 have 20, 35 and 50 clusters of 150
points, Birch1 is a grid of 10 x 10 clusters, Birch2 has them on a sine curve. They are drawn here
anew by these descriptions: the published files are not needed.
"""

from collections.abc import Callable

import numpy as np

# Points (n, 2) and the middles (k, 2) of their clusters.
Problem = tuple[np.ndarray, np.ndarray]


def _apart(rng: np.random.Generator, k: int, least: float) -> np.ndarray:
    """Middles in the unit square, no two of them nearer than `least`."""
    middles: list[np.ndarray] = []
    while len(middles) < k:
        one = rng.random(2)
        if all(np.hypot(*(one - other)) >= least for other in middles):
            middles.append(one)
    return np.stack(middles)


def _around(rng: np.random.Generator, middles: np.ndarray, n: int, spread: float) -> Problem:
    own = rng.permutation(np.arange(n) % len(middles))
    return middles[own] + spread * rng.normal(size=(n, 2)), middles


def s_set(number: int) -> Problem:
    rng = np.random.default_rng([1, number])
    return _around(rng, _apart(rng, 15, 0.15), 5000, (0.02, 0.03, 0.04, 0.05)[number - 1])


def a_set(number: int) -> Problem:
    k = (20, 35, 50)[number - 1]
    rng = np.random.default_rng([2, number])
    return _around(rng, _apart(rng, k, 0.45 / np.sqrt(k)), 150 * k, 0.09 / np.sqrt(k))


def grid(side: int, each: int = 100) -> Problem:
    """Birch1: a grid; distance of neighbours 4 sqrt(2) standard deviations."""
    rng = np.random.default_rng([3, side])
    middles = np.stack(np.meshgrid(range(side), range(side)), axis=-1).reshape(-1, 2).astype(float)
    return _around(rng, middles, each * len(middles), 1 / (4 * np.sqrt(2)))


def sine(k: int = 100, each: int = 100) -> Problem:
    """Birch2: clusters along a sine curve."""
    rng, x = np.random.default_rng(4), np.arange(k, dtype=float)
    return _around(rng, np.stack([x, 8 * np.sin(2 * np.pi * x / 25)], axis=1), each * k, 0.25)


PLANTED: dict[str, Callable[[], Problem]] = {
    **{f"S{i}": lambda i=i: s_set(i) for i in (1, 2, 3, 4)},
    **{f"A{i}": lambda i=i: a_set(i) for i in (1, 2, 3)},
    "grid, k = 16": lambda: grid(4),
    "grid (Birch1), k = 100": lambda: grid(10),
    "sine (Birch2), k = 100": sine,
}


def centroid_index(found: np.ndarray, truth: np.ndarray) -> int:
    """Number of centers that are no one's nearest, in the worse direction (Fränti et al. 2014)."""
    away = ((found[:, None] - truth) ** 2).sum(axis=2)
    return max(
        len(truth) - len(np.unique(away.argmin(axis=1))),
        len(found) - len(np.unique(away.argmin(axis=0))),
    )
