"""The data sets of the parameter sweep, in layers with every level equally often."""

from collections.abc import Iterator
from functools import cache
from importlib.resources import as_file, files

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from lloydformer.verify.mixture import MixtureSize

CLUSTERS = tuple(range(5, 55, 5))
DIMENSIONS = tuple(range(1, 11))
SCALES = tuple(range(1, 11))
POINTS = (100, 278, 774, 2154, 5994, 16681, 46415, 129154, 359381, 1000000)
GAMMAS = (1, 10, 100)
N_LAYERS = 100
AXES = {"Clusters": CLUSTERS, "Dimensions": DIMENSIONS, "Scale": SCALES, "Points": POINTS}
"""Parameters by the authors' names, in the order of the axes of `authors_losses`."""


def levels(size: MixtureSize) -> tuple[int, ...]:
    """The index of its value on each of AXES."""
    values = (size.clusters, size.dimensions, size.scale, size.points)
    return tuple(axis.index(v) for axis, v in zip(AXES.values(), values, strict=True))


def layer(number: int) -> Iterator[MixtureSize]:
    """A hundred data sets: each level of each axis ten times, and nearly all pairs of levels.

    A layer is a Latin square: clusters and dimensions determine the scale and the number of
    points. Ten consecutive layers contain all triples of clusters, dimensions and scale; all
    hundred layers contain each of the ten thousand data sets once.
    """
    by_scale, by_points = number % 10, number // 10 + number
    for a, clusters in enumerate(CLUSTERS):
        for b, dimensions in enumerate(DIMENSIONS):
            scale, points = (by_scale - a - b) % 10, (by_points + a + 2 * b) % 10
            yield MixtureSize(clusters, dimensions, SCALES[scale], POINTS[points])


@cache
def authors_losses() -> Float[ndarray, "10 10 10 10 3"]:
    """The Loss of each of the authors' 30,000 runs, by AXES and GAMMAS; NaN if it is missing.

    This is the published table `klic_parameter_sweep.csv` as an array.
    """
    with (
        as_file(files("lloydformer.paper.parameter_sweep") / "authors_losses.npz") as path,
        np.load(path) as saved,
    ):
        for name, axis in {**AXES, "Gamma": GAMMAS}.items():
            assert tuple(saved[name.lower()]) == axis
        return saved["loss"].astype(float)
