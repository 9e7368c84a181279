"""Plots of a clustering show its numbers."""

import numpy as np
import torch
from sklearn.decomposition import PCA

from lloydformer.plots.clusters import (
    cluster_map,
    cluster_marker,
    cluster_sizes,
    plane_of,
    silhouette_blades,
)
from lloydformer.plots.curves import descent, over_numbers
from lloydformer.plots.palette import CLUSTERS, cluster_colour, ink_on


def test_bars_have_sizes_and_shares(ax):
    cluster_sizes({0: 30, 4: 10}, ax, n_rows=50)
    assert [bar.get_width() for bar in ax.patches] == [30, 10]
    assert [text.get_text() for text in ax.texts] == ["30 (60.0%)", "10 (20.0%)"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "4"]


def test_a_map_has_every_point_and_each_center_with_its_number(ax):
    points = torch.randn(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(50) % 3 - 1
    cluster_map(points, labels, {0: (0.0, 1.0), 1: (2.0, 3.0)}, ax)
    assert sum(len(drawn.get_offsets()) for drawn in ax.collections) == 50
    assert [(t.get_text(), t.get_position()) for t in ax.texts] == [
        ("0", (0.0, 1.0)),
        ("1", (2.0, 3.0)),
    ]


def test_a_map_of_large_numbers(ax):
    """Beyond what float32 holds."""
    points = 1e147 * torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    cluster_map(points, torch.tensor([0, 1]), {0: (0.0, 0.0), 1: (1e147, 2e147)}, ax)
    assert ax.get_xlim()[1] > 1e147


def test_clusters_of_one_colour_have_different_markers():
    signs = {(cluster_colour(j), cluster_marker(j)) for j in range(64)}
    assert len(signs) == 64


def test_numbers_can_be_read_on_every_colour():
    """Contrast as WCAG defines it; 4.5 is its bound for text."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for colour in CLUSTERS:
        low, high = sorted([luminance(colour), luminance(ink_on(colour))])
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_silhouettes_and_their_mean(ax):
    silhouette_blades(torch.tensor([0.5, 0.1, -0.3]).double(), torch.tensor([0, 0, 4]), ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "4"]
    assert ax.texts[0].get_text() == "mean 0.10"


def test_principal_components_equal_scikit_learns():
    points = np.random.default_rng(0).normal(size=(40, 5)) * [5, 3, 1, 1, 1]
    middle, components = plane_of(torch.from_numpy(points))
    theirs = PCA(2).fit(points)
    assert np.allclose(middle.numpy(), theirs.mean_)
    assert np.allclose(np.abs(components.numpy()), np.abs(theirs.components_))


def test_principal_components_of_one_feature():
    _, components = plane_of(torch.randn(9, 1, dtype=torch.float64))
    assert components.shape == (2, 1)
    assert components[1].item() == 0


def test_curves(ax):
    descent([5.0, 3.0, 2.0], ax)
    assert ax.lines[0].get_ydata().tolist() == [5.0, 3.0, 2.0]


def test_curve_over_numbers_leaves_out_missing_values(ax):
    over_numbers([1, 2, 3], [None, 0.4, 0.3], "silhouette", 2, ax)
    assert ax.lines[0].get_xdata().tolist() == [2, 3]
    assert ax.texts[0].get_text() == "k = 2"
