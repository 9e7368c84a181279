"""Planted problems: clusters with known labels, of several sizes and widths, with outliers."""

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

SCALES = {
    "standardised": lambda rows: (rows - rows.mean(0)) / rows.std(0),
    "in [0, 1]": lambda rows: (rows - rows.min(0)) / np.ptp(rows, axis=0),
    "times 1000": lambda rows: rows * 1000,
    "as it is": lambda rows: rows,
}
REACH = {"": 0.0, "near": 1.5, "box": 3.0, "far": 10.0}
"""Outliers are uniform in the box of the clusters times this."""


@dataclass(frozen=True)
class Planted:
    """Rows, and the cluster of each; -1 for outliers."""

    rows: NDArray[np.float64]
    truth: NDArray[np.int64]

    def agreement(self, labels: NDArray[np.int64]) -> float:
        """Adjusted Rand index over the rows that are no outliers."""
        inside = self.truth >= 0
        return adjusted_rand_score(self.truth[inside], labels[inside])


def planted(
    seed: int, d: int, k: int, *, even: bool, wide: bool, gap: float = 7.0, outliers: str = ""
) -> Planted:
    """Normal clusters whose middles are at least `gap` times the largest width apart.

    even: all clusters have the same size; wide: their widths are between 0.5 and 2.
    """
    rng = np.random.default_rng(seed)
    widths = rng.uniform(0.5, 2.0, k) if wide else np.ones(k)
    middles = _apart(rng, d, k, gap * widths.max())
    shares = np.full(k, 1 / k) if even else 0.7 * rng.dirichlet(np.full(k, 3.0)) + 0.3 / k
    truth = np.concatenate([np.arange(k), rng.choice(k, size=1000 - k, p=shares)])
    rows = middles[truth] + widths[truth, None] * rng.normal(size=(1000, d))
    if outliers:
        low, high = rows.min(0), rows.max(0)
        away = rng.choice(1000, 100, replace=False)
        box = REACH[outliers] * rng.uniform(-0.5, 0.5, size=(100, d)) * (high - low)
        rows[away], truth[away] = (low + high) / 2 + box, -1
    return Planted(list(SCALES.values())[seed % len(SCALES)](rows), truth)


def _apart(rng: np.random.Generator, d: int, k: int, gap: float) -> NDArray[np.float64]:
    middles: list[NDArray[np.float64]] = []
    side = gap * max(1.0, k ** (1 / d))
    while len(middles) < k:
        new = rng.uniform(-side, side, d)
        if all(np.linalg.norm(new - other) >= gap for other in middles):
            middles.append(new)
        side *= 1.01
    return np.array(middles)


KINDS = list(product((2, 8, 64), (2, 5, 20), (True, False), (True, False)))
"""Features, clusters, even sizes, several widths."""
