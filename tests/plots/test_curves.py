"""Curves show the values that they are given."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

import lloydformer as lf
from lloydformer import plots
from lloydformer.learning import Evaluation
from lloydformer.plots.curves import criterion_curve, history_curve, level_curves, ribbon
from lloydformer.plots.palette import cluster_colour

HISTORY = [
    Evaluation(50, 100, (9.0, 8.0), (2.0, 1.5), (0.01, 0.01)),
    Evaluation(100, 100, (5.0, 4.0), (1.2, 0.9), (0.01, 0.005)),
]


def test_one_trace_is_one_curve_without_a_legend(trace: lf.Trace) -> None:
    ax = plots.objective_curve(trace)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), trace.objective)
    assert ax.get_legend() is None


def test_named_traces_are_in_the_legend(trace: lf.Trace) -> None:
    ax = plots.objective_curve({"one": trace, "two": trace})
    assert [words.get_text() for words in ax.get_legend().get_texts()] == ["one", "two"]
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


def test_relative_curves_start_at_one(trace: lf.Trace) -> None:
    assert plots.objective_curve(trace, relative=True).lines[0].get_ydata()[0] == 1.0


def test_a_batch_shows_its_mean() -> None:
    points = torch.randn(3, 8, 2, generator=torch.manual_seed(0), dtype=torch.float64)
    trace = lf.Circuit(lf.recipes.lloyd(), 2, 2)(points, points[:, :2], n_layers=2)
    shown = plots.objective_curve(trace).lines[0].get_ydata()
    np.testing.assert_allclose(shown, trace.objective.mean(dim=0))


def test_a_curve_for_each_run_and_a_line_at_one(ax):
    assert plots.convergence(HISTORY, ["a", "b"], ax) is ax
    curves = [line.get_xydata().tolist() for line in ax.get_lines()]
    assert curves[:2] == [[[50, 2.0], [100, 1.2]], [[50, 1.5], [100, 0.9]]]
    assert {y for _, y in curves[2]} == {1.0}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_an_empty_history_shows_only_the_line(ax):
    assert len(plots.convergence([], ax=ax).get_lines()) == 1


def test_the_history_has_a_value_for_each_iteration(ax):
    history_curve([5.0, 3.0, 2.0], ax)
    assert ax.lines[0].get_ydata().tolist() == [5.0, 3.0, 2.0]


def test_curve_over_numbers_leaves_out_missing_values(ax):
    criterion_curve([1, 2, 3], [None, 0.4, 0.3], "silhouette", 2, ax)
    assert ax.lines[0].get_xdata().tolist() == [2, 3]
    assert ax.texts[0].get_text() == "k = 2"


def test_each_line_has_its_means_and_bars_of_its_deviation():
    means, deviations = {"1": [3.0, 2.0], "10": [1.0, 0.5]}, {"1": [0.5, 0.25], "10": [0.1, 0.1]}
    ax = level_curves(["5", "10"], means, deviations, Figure().subplots())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "10"]
    first, second = ax.containers
    assert first.lines[0].get_ydata().tolist() == [3.0, 2.0]
    assert first.lines[0].get_xdata() == pytest.approx([-0.08, 0.92])
    (bars,) = second.lines[2]
    assert bars.get_segments()[1][:, 1] == pytest.approx([0.4, 0.6])


def test_a_line_through_the_middles_and_a_band_from_low_to_high():
    ax = Figure().subplots()
    assert ribbon([0, 1], [2.0, 3.0], [1.0, 2.5], [4.0, 3.5], ax, "name", 1, dashed=True) is ax
    (line,) = ax.lines
    assert list(line.get_ydata()) == [2.0, 3.0]
    assert (line.get_color(), line.get_linestyle()) == (cluster_colour(1), "--")
    assert line.get_label() == "name"
    corners = ax.collections[0].get_paths()[0].vertices.tolist()
    assert [0.0, 1.0] in corners
    assert [1.0, 3.5] in corners
