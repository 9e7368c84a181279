"""Points for benchmarks: mixtures of Gaussians, noise without clusters, enlarged real sets."""

from pathlib import Path
from typing import TypeAlias

import numpy as np
from jaxtyping import Float
from scipy import sparse

from lloydformer.data.numpy_files import read_npz

Points: TypeAlias = Float[np.ndarray, "n d"] | sparse.csr_matrix

BOX = 3.0
"""Means of a mixture are uniform in [-3, 3] in each feature; its noise has deviation 1."""

JITTER = 0.05
"""Standard deviation of the noise added to a repeated row, in those of its column."""

_CHUNK = 1 << 18
"""Rows filled at a time; bounds temporary memory."""


def mixture(n: int, d: int, k: int, seed: int) -> Points:
    """n points around k means, in float32."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(-BOX, BOX, size=(k, d)).astype(np.float32)
    points = rng.standard_normal((n, d), dtype=np.float32)
    for start in range(0, n, _CHUNK):
        part = points[start : start + _CHUNK]
        part += means[rng.integers(k, size=len(part))]
    return points


def close_mixture(n: int, d: int, k: int, seed: int) -> Points:
    """n points around k means in the unit cube, with noise of deviation 0.15, in float32."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=(k, d)).astype(np.float32)
    points = rng.standard_normal((n, d), dtype=np.float32)
    for start in range(0, n, _CHUNK):
        part = points[start : start + _CHUNK]
        part *= np.float32(0.15)
        part += means[rng.integers(k, size=len(part))]
    return points


def words(n: int, d: int, per_row: int, topics: int, seed: int) -> sparse.csr_matrix:
    """n rows of about `per_row` positive numbers, as in counts of words: some columns are frequent.

    Half of a row's columns are from its topic, a tenth of all columns.
    """
    rng = np.random.default_rng(seed)
    counts = rng.poisson(per_row, size=n)
    ends = np.concatenate([[0], np.cumsum(counts)])
    size = int(ends[-1])
    frequent = _zipf(rng, d, size)
    of_topic = rng.integers(d, size=(topics, d // 10))
    topic = np.repeat(rng.integers(topics, size=n), counts)
    own = of_topic[topic, _zipf(rng, d // 10, size)]
    columns = np.where(rng.random(size) < 0.5, own, frequent)
    values = np.log1p(rng.geometric(0.5, size=size)).astype(np.float32)
    matrix = sparse.csr_matrix((values, columns.astype(np.int32), ends.astype(np.int32)), (n, d))
    matrix.sum_duplicates()
    return matrix


def _zipf(rng: np.random.Generator, d: int, size: int) -> np.ndarray:
    """Numbers below d; number j is drawn in proportion to 1 / (j + 10)."""
    return np.minimum(10 * ((d + 10) / 10) ** rng.random(size) - 10, d - 1).astype(np.int64)


def noise(n: int, d: int, k: int, seed: int) -> Points:
    """n points of one Gaussian: no clusters, so that bounds skip little work."""
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def repeated(path: Path, n: int, seed: int) -> Points:
    """Rows of a data set, columns scaled to [0, 1], repeated to n rows, with jitter."""
    rng = np.random.default_rng(seed)
    X = read_npz(path).astype(np.float64)
    X = X[:, np.ptp(X, axis=0) > 0]
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    points = X[rng.permutation(n) % len(X)].astype(np.float32)
    width = (JITTER * X.std(axis=0)).astype(np.float32)
    for start in range(0, n, _CHUNK):
        part = points[start : start + _CHUNK]
        part += width * rng.standard_normal(part.shape, dtype=np.float32)
    return points


def some_rows(points: Points, k: int, seed: int) -> Float[np.ndarray, "k d"]:
    """k different rows, dense: the initial centers of all contenders."""
    rows = np.random.default_rng(seed).choice(points.shape[0], size=k, replace=False)
    return points[rows] if isinstance(points, np.ndarray) else points[rows].toarray()
