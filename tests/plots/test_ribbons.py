"""A line with a band around it."""

from matplotlib.figure import Figure

from lloydformer.plots.palette import cluster_colour
from lloydformer.plots.ribbons import ribbon


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
