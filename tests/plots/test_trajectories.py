"""Paths of centers."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import lloydformer as lf
from lloydformer import plots
from lloydformer.plots.palette import cluster_colour
from lloydformer.plots.trajectories import project_to_plane


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


def test_one_feature_is_drawn_on_a_line() -> None:
    assert project_to_plane(torch.ones(3, 1)).tolist() == [[1.0, 0.0]] * 3


def test_a_batch_is_refused_with_the_repair() -> None:
    points = torch.randn(2, 6, 2, generator=torch.manual_seed(0))
    trace = lf.Circuit(lf.recipes.lloyd(), 2, 2)(points, points[:, :2], n_layers=1)
    with pytest.raises(ValueError, match=r"trace: found a batch of 2 problems; run .* one of them"):
        plots.trajectories(trace)
