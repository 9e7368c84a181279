"""Progress: what a callback hears, and what the bar says."""

import io
import sys

import numpy as np
import pytest
import rich.console

import lloydformer as lf
from lloydformer.solving.progress import _speed
from lloydformer.solving.run import Progress

X = np.random.default_rng(0).normal(size=(500, 2))


def test_a_callback_hears_how_many_points_in_how_many_seconds():
    heard = []
    lf.KMeans(3, random_state=0, max_iter=4, callback=heard.append).fit(X)
    assert heard
    assert all(p.n_points == 500 and 0 < p.seconds < 60 for p in heard)


@pytest.mark.parametrize(
    ("n_points", "seconds", "words"),
    [(500, 2.0, ", 250 points/s"), (5000, 2.0, ", 2.5 thousand points/s"),
     (20_000_000, 0.8, ", 25 million points/s"), (0, 0.0, "")],
)  # fmt: skip
def test_speed_in_words(n_points, seconds, words):
    assert _speed(Progress(0, 0, 1.0, 0.0, n_points, seconds)) == words


def test_the_bar_shows_points_per_second(monkeypatch):
    shown, console = io.StringIO(), rich.console.Console
    monkeypatch.setattr(
        rich.console, "Console",
        lambda **how: console(file=shown, force_terminal=True, width=100),
    )  # fmt: skip
    with lf.ProgressBar() as bar:
        lf.KMeans(3, random_state=0, max_iter=4, callback=bar).fit(X)
    assert "start 1, iteration" in shown.getvalue()
    assert "points/s" in shown.getvalue()


class ZMQInteractiveShell:
    """The class of the shell of a notebook, by whose name rich knows that it is one."""


def test_the_bar_needs_no_widgets_in_a_notebook(monkeypatch, capsys):
    monkeypatch.setattr(rich.console, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # its import fails
    assert rich.console.Console().is_jupyter
    with lf.ProgressBar() as bar:
        lf.KMeans(3, random_state=0, max_iter=4, callback=bar).fit(X)
    shown = capsys.readouterr().err
    # One line that is written over: a notebook knows carriage returns, and no other codes.
    assert shown.startswith("\r")
    assert "start 1, iteration" in shown
    assert "points/s" in shown
    assert shown.endswith("\n")
    assert shown.count("\n") == 1


def test_a_line_in_a_notebook_is_written_over_whole(monkeypatch, capsys):
    """A shorter line leaves nothing of a longer one."""
    monkeypatch.setattr(rich.console, "get_ipython", ZMQInteractiveShell, raising=False)
    monkeypatch.setattr("lloydformer.solving.progress._SECONDS", 0.0)
    with lf.ProgressBar() as bar:
        bar(Progress(0, 0, 123456.0, 0.0, 500, 2.0))
        bar(Progress(0, 1, 1.0, 0.0, 0, 0.0))
    _, first, second, last = capsys.readouterr().err.split("\r")[1:]
    assert "123456" in first
    assert len(second) >= len(first)
    assert second.rstrip() == last.rstrip()
