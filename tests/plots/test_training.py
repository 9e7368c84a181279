"""The plot of training has a curve for each run and a line for Lloyd."""

import pytest

from lloydformer.learning import Evaluation
from lloydformer.plots import convergence

plt = pytest.importorskip("matplotlib.pyplot")
HISTORY = [
    Evaluation(50, 100, (9.0, 8.0), (2.0, 1.5), (0.01, 0.01)),
    Evaluation(100, 100, (5.0, 4.0), (1.2, 0.9), (0.01, 0.005)),
]


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


def test_a_curve_for_each_run_and_a_line_at_one(ax):
    assert convergence(HISTORY, ["a", "b"], ax) is ax
    curves = [line.get_xydata().tolist() for line in ax.get_lines()]
    assert curves[:2] == [[[50, 2.0], [100, 1.2]], [[50, 1.5], [100, 0.9]]]
    assert {y for _, y in curves[2]} == {1.0}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]


def test_an_empty_history_shows_only_the_line(ax):
    assert len(convergence([], ax=ax).get_lines()) == 1
