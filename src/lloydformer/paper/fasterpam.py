"""FasterPAM, the usual solver for k-medoids, from the package `kmedoids` where it is there."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.metrics.pairwise import euclidean_distances

MISSING = "the package kmedoids is not there"


def there() -> bool:
    return find_spec("kmedoids") is not None


def medoids(
    points: Float[ndarray, "n d"], starts: Sequence[Int[ndarray, " k"]]
) -> list[Int[ndarray, " k"]]:
    """From each start, rows that no exchange of one for another makes better; n x n are held."""
    solver = import_module("kmedoids")
    distances = euclidean_distances(points.astype(np.float32), squared=True)
    found = [solver.fasterpam(distances, start.astype(np.uint64), n_cpu=1) for start in starts]
    return [one.medoids.astype(np.int64) for one in found]
