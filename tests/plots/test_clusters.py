"""Maps, paths of centers, sizes and silhouettes show the numbers that they are given."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.decomposition import PCA

import lloydformer as lf
from lloydformer import plots
from lloydformer.plots.clusters import (
    cluster_map,
    cluster_marker,
    cluster_sizes,
    principal_plane,
    project_to_plane,
    silhouette_bands,
)
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
    silhouette_bands(torch.tensor([0.5, 0.1, -0.3]).double(), torch.tensor([0, 0, 4]), ax)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "4"]
    assert ax.texts[0].get_text() == "mean 0.10"


def test_principal_components_equal_scikit_learns():
    points = np.random.default_rng(0).normal(size=(40, 5)) * [5, 3, 1, 1, 1]
    middle, components = principal_plane(torch.from_numpy(points))
    theirs = PCA(2).fit(points)
    assert np.allclose(middle.numpy(), theirs.mean_)
    assert np.allclose(np.abs(components.numpy()), np.abs(theirs.components_))


def test_principal_components_of_one_feature():
    _, components = principal_plane(torch.randn(9, 1, dtype=torch.float64))
    assert components.shape == (2, 1)
    assert components[1].item() == 0


def test_it_draws_into_the_given_axes_and_returns_them(trace: lf.Trace) -> None:
    ax = Figure().add_subplot()
    assert plots.trajectories(trace, ax) is ax


def test_without_axes_it_creates_a_figure(trace: lf.Trace) -> None:
    assert plots.trajectories(trace).get_figure() is not None


def test_points_have_the_colour_of_their_label(trace: lf.Trace) -> None:
    (dots,) = plots.trajectories(trace).collections
    expected = [to_rgb(cluster_colour(label)) for label in trace.labels[-1].tolist()]
    np.testing.assert_allclose(dots.get_facecolors()[:, :3], expected)


def test_a_circle_at_the_start_and_triangles_after_it(trace: lf.Trace) -> None:
    lines = plots.trajectories(trace).lines
    circles = [line.get_xydata() for line in lines if line.get_marker() == "o"]
    triangles = [line.get_xydata() for line in lines if line.get_marker() == "^"]
    np.testing.assert_allclose(np.concatenate(circles), trace.centers[0])
    assert sum(map(len, triangles)) == 2 * trace.n_layers
    np.testing.assert_allclose(np.concatenate(triangles)[1], trace.centers[-1][0])


def test_more_than_two_features_are_shown_by_principal_components() -> None:
    points = torch.randn(50, 5, generator=torch.manual_seed(0), dtype=torch.float64)
    points = points * torch.tensor([1.0, 9.0, 1.0, 4.0, 1.0])
    flat = project_to_plane(points)
    assert flat.shape == (50, 2)
    variances = torch.linalg.eigvalsh(torch.cov(points.T)).flip(0)[:2]
    torch.testing.assert_close(flat.var(dim=0), variances)
    torch.testing.assert_close(project_to_plane(points, dims=(1, 3)), points[:, [1, 3]])


def test_labels_of_the_axes() -> None:
    points = torch.randn(9, 3, generator=torch.manual_seed(0))
    trace = lf.Circuit(lf.recipes.lloyd(), 3, 2)(points, points[:2], n_layers=1)
    assert plots.trajectories(trace).get_xlabel() == "component 0"
    assert plots.trajectories(trace, dims=(0, 2)).get_ylabel() == "feature 2"


def test_a_single_point_of_many_features_is_drawn() -> None:
    """One point has no principal component, and lies at the origin of its plane."""
    points = torch.tensor([[1.0, 2.0, 3.0]])
    trace = lf.Circuit(lf.recipes.lloyd(), 3, 1)(points, points, n_layers=1)
    (dots,) = plots.trajectories(trace).collections
    assert dots.get_offsets().tolist() == [[0.0, 0.0]]


def test_one_feature_is_drawn_on_a_line() -> None:
    assert project_to_plane(torch.ones(3, 1)).tolist() == [[1.0, 0.0]] * 3


def test_a_batch_is_refused_with_the_repair() -> None:
    points = torch.randn(2, 6, 2, generator=torch.manual_seed(0))
    trace = lf.Circuit(lf.recipes.lloyd(), 2, 2)(points, points[:, :2], n_layers=1)
    with pytest.raises(ValueError, match=r"trace: found a batch of 2 problems; run .* one of them"):
        plots.trajectories(trace)
