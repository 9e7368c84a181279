"""Curves of the objective."""

import numpy as np
import torch

import lloydformer as lf
from lloydformer import plots


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
