"""Points for benchmarks: mixtures of Gaussians, noise without clusters, enlarged real sets."""

from pathlib import Path

import numpy as np
from jaxtyping import Float

from lloydformer.data.numpy_files import read_npz

Points = Float[np.ndarray, "n d"]

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
    """k different rows: the initial centers of all contenders."""
    return points[np.random.default_rng(seed).choice(len(points), size=k, replace=False)]
