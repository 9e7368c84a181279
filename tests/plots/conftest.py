"""Plots are drawn in memory; every figure is closed after its test."""

from collections.abc import Iterator

import matplotlib
import pytest
import torch
from matplotlib import pyplot
from matplotlib.axes import Axes

import lloydformer as lf

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.fixture
def ax() -> Axes:
    return pyplot.subplots()[1]


@pytest.fixture
def trace() -> lf.Trace:
    """Two pairs on a line in the plane; after one layer the centers are their means."""
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [12.0, 0.0]])
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=2)
    return circuit(points, points[[0, 2]], n_layers=2, names_filter=("layers.0.*",))
