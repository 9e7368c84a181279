"""Progress: what a callback hears, and what the bar says."""

import io

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
