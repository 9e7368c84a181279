"""The settings of the parameter sweep, in layers that hold every level equally often."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import as_file, files

import numpy as np
from jaxtyping import Float
from numpy import ndarray

CLUSTERS = tuple(range(5, 55, 5))
DIMENSIONS = tuple(range(1, 11))
SCALES = tuple(range(1, 11))
POINTS = (100, 278, 774, 2154, 5994, 16681, 46415, 129154, 359381, 1000000)
GAMMAS = (1, 10, 100)
N_LAYERS = 100
AXES = {"Clusters": CLUSTERS, "Dimensions": DIMENSIONS, "Scale": SCALES, "Points": POINTS}
"""By the authors' names, in the order in which their losses are kept."""


@dataclass(frozen=True)
class Setting:
    """One data set of the sweep; each is clustered with every gamma."""

    clusters: int
    dimensions: int
    scale: int
    points: int

    @property
    def levels(self) -> tuple[int, ...]:
        """Where it lies along each of the axes."""
        values = (self.clusters, self.dimensions, self.scale, self.points)
        return tuple(axis.index(v) for axis, v in zip(AXES.values(), values, strict=True))


def layer(number: int) -> Iterator[Setting]:
    """A hundred settings: each level of each axis ten times, and nearly all pairs of levels.

    They are a Latin square: the scale follows from clusters and dimensions, and so does the
    number of points. Ten layers that follow each other hold all triples of clusters, dimensions
    and scale, and the hundred of them all ten thousand settings, each once.
    """
    by_scale, by_points = number % 10, number // 10 + number
    for a, clusters in enumerate(CLUSTERS):
        for b, dimensions in enumerate(DIMENSIONS):
            scale, points = (by_scale - a - b) % 10, (by_points + a + 2 * b) % 10
            yield Setting(clusters, dimensions, SCALES[scale], POINTS[points])


@cache
def authors_losses() -> Float[ndarray, "10 10 10 10 3"]:
    """The Loss of each of the authors' 30,000 runs, by AXES and GAMMAS; NaN where they have none.

    It is the published table `klic_parameter_sweep.csv` as an array.
    """
    with (
        as_file(files("lloydformer.paper") / "parameter_sweep_authors.npz") as path,
        np.load(path) as kept,
    ):
        for name, axis in {**AXES, "Gamma": GAMMAS}.items():
            assert tuple(kept[name.lower()]) == axis
        return kept["loss"].astype(float)
