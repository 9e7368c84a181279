"""Times of benchmarks as a chart."""

import pytest
from matplotlib import pyplot

from lloydformer import plots


def result(ahead):
    contenders = {
        "ours": {"median": 2e-3, "fastest": 1e-3, "slowest": 3e-3, "times": 1.0},
        "theirs": {"median": 5e-3, "fastest": 4e-3, "slowest": 9e-3, "times": 2.5},
    }
    row = {"contenders": contenders, "ahead": ahead}
    rows = {"first": {"contenders": dict(contenders), "ahead": ahead}, "second": row}
    return {
        "rows": rows,
        "per": "iteration",
        "asks": "How long",
        "ahead": ahead,
        "settings": {"threads": 2},
    }


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_positions_of_medians_and_ranges(layout):
    ax = plots.times(result(2.5), pyplot.figure(layout=layout).subplots())
    spread, median = ax.lines[:2]
    assert list(spread.get_xdata()) == [1e-3, 3e-3]
    assert list(median.get_xdata()) == [2e-3]
    assert ax.get_xscale() == "log"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["first", "second"]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["ours", "theirs"]
    ax.figure.canvas.draw()


def test_ratios_are_on_the_right_or_beside_each_marker():
    assert [t.get_text() for t in plots.times(result(2.5)).texts] == ["2.50×", "2.50×"]
    beside = plots.times(result(None)).texts
    assert [t.get_text() for t in beside] == ["2.50×", "2.50×"]
    assert beside[0].xy == pytest.approx((9e-3, 0.15))


def test_a_contender_has_one_colour_in_all_rows():
    drawn = result(None)
    del drawn["rows"]["first"]["contenders"]["theirs"]
    third = {"median": 1e-3, "fastest": 1e-3, "slowest": 1e-3, "times": 2.5}
    drawn["rows"]["second"] = {"contenders": {"ours": third, "theirs": third}, "ahead": None}
    drawn["rows"]["third"] = {"contenders": {"theirs": third}, "ahead": None}
    ax = plots.times(drawn)
    colours = {line.get_label(): line.get_color() for line in ax.lines}
    assert ax.lines[-1].get_color() == colours["theirs"] != colours["ours"]
    assert [text.get_text() for text in ax.figure.legends[0].get_texts()] == ["ours", "theirs"]
