"""Means over levels and over pairs of levels."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from lloydformer.plots.levels import over_levels, pair_matrix


def test_each_line_has_its_means_and_bars_of_its_deviation():
    means, deviations = {"1": [3.0, 2.0], "10": [1.0, 0.5]}, {"1": [0.5, 0.25], "10": [0.1, 0.1]}
    ax = over_levels(["5", "10"], means, deviations, Figure().subplots())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["5", "10"]
    first, second = ax.containers
    assert first.lines[0].get_ydata().tolist() == [3.0, 2.0]
    assert first.lines[0].get_xdata() == pytest.approx([-0.08, 0.92])
    (bars,) = second.lines[2]
    assert bars.get_segments()[1][:, 1] == pytest.approx([0.4, 0.6])


def test_a_matrix_starts_at_the_bottom_and_leaves_gaps():
    ax = Figure().subplots()
    image = pair_matrix([[0.0, 1.0], [None, 2.0]], ["1", "2"], ["a", "b"], top=4.0, ax=ax)
    assert image.get_clim() == (0.0, 4.0)
    assert ax.get_ylim() == (-0.5, 1.5)
    assert np.isnan(image.get_array().filled(np.nan)[1, 0])
