"""FasterPAM, the usual solver for k-medoids, from the optional package `kmedoids`."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from sklearn.metrics.pairwise import euclidean_distances

MISSING = "the package kmedoids is not installed"


def is_installed() -> bool:
    """Whether the package `kmedoids` can be imported."""
    return find_spec("kmedoids") is not None


def medoids(
    points: Float[ndarray, "n d"], starts: Sequence[Int[ndarray, " k"]]
) -> list[Int[ndarray, " k"]]:
    """From each start, medoids (rows) that no single exchange improves; needs n x n memory."""
    solver = import_module("kmedoids")
    distances = euclidean_distances(points.astype(np.float32), squared=True)
    found = [solver.fasterpam(distances, start.astype(np.uint64), n_cpu=1) for start in starts]
    return [one.medoids.astype(np.int64) for one in found]
