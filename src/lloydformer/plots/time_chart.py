"""The chart of a benchmark's times."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import INK, cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vP"
_BAND, _GRID = "#F6F6F6", "#DDDDDD"

# Letters of a line of the title: what fits above the 8.5 inches that `bench -o` draws.
_TITLE_WIDTH = 70

# Times that differ by less have ticks at 2 and 5 as well: below three powers of ten, ticks at the
# powers alone leave most of the axis without a number.
_NARROW = 300


def times(result: Mapping[str, Any], ax: "Axes | None" = None) -> "Axes":
    """Draw the times of a benchmark on a logarithmic scale.

    A marker is the median, a line the range. On the right is the time of the best peer divided by
    ours (the first contender); without peers the ratio is next to each marker.

    Parameters
    ----------
    result : mapping of str to Any
        The result of `lloydformer bench --json`.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    See Also
    --------
    convergence : The plot of a training.

    Examples
    --------
    >>> from lloydformer import plots
    >>> times = {"median": 2e-3, "fastest": 1e-3, "slowest": 3e-3, "times": 1.0}
    >>> result = {
    ...     "rows": {"small": {"contenders": {"lloydformer": times}, "ahead": None}},
    ...     "per": "iteration",
    ...     "asks": "How long?",
    ...     "ahead": None,
    ...     "settings": {"threads": 2},
    ... }
    >>> plots.times(result).get_xlabel()
    'time per iteration'
    """
    ax = axes_or_new(ax)
    from matplotlib.ticker import EngFormatter, LogLocator

    rows = result["rows"]
    # A row may lack contenders, so places, colours and markers follow the names of all rows.
    names = list(dict.fromkeys(name for row in rows.values() for name in row["contenders"]))
    for place, row in enumerate(rows.values()):
        _draw_row(ax, place, row, names)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xscale="log", ylim=(len(rows) - 0.4, -0.6), xlabel=f"time per {result['per']}")
    title = fill(f"{result['asks']}, {result['settings']['threads']} threads", _TITLE_WIDTH)
    if result["ahead"] is not None:
        title += f"\nright: the best peer, in times of ours; on average {result['ahead']:.2f}"
    ax.set_title(title, loc="left", fontsize="medium")
    low, high = ax.get_xlim()
    between = (1, 2, 5) if high < _NARROW * low else (1,)
    ax.xaxis.set_major_locator(LogLocator(subs=between))
    ax.xaxis.set_major_formatter(EngFormatter(unit="s"))
    ax.xaxis.set_minor_locator(LogLocator(subs=range(1, 10)))
    ax.xaxis.set_minor_formatter("")
    ax.grid(axis="x", color=_GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return ax


def _draw_row(ax: "Axes", place: int, row: Mapping[str, Any], names: list[str]) -> None:
    """Draw one row of the chart: a line and a marker for each contender, and the ratios."""
    ax.axhspan(place - 0.42, place + 0.42, color=_BAND, zorder=0)
    for name, time in row["contenders"].items():
        number = names.index(name)
        height, colour = place + 0.6 * ((number + 0.5) / len(names) - 0.5), cluster_colour(number)
        ax.plot([time["fastest"], time["slowest"]], [height] * 2, color=colour, lw=1.5)
        ax.plot(
            [time["median"]],
            [height],
            _MARKERS[number % len(_MARKERS)],
            color=colour,
            markersize=8 if number == 0 else 6,
            # The legend names a contender once, from the first row that has it.
            label=None if name in ax.get_legend_handles_labels()[1] else name,
        )
        if row["ahead"] is None and number > 0:
            words, end = f"{time['times']:.2f}×", (time["slowest"], height)
            style: dict[str, Any] = {"color": INK, "fontsize": "small", "va": "center"}
            ax.annotate(words, end, (8, 0), textcoords="offset points", **style)
    if row["ahead"] is not None:
        right = ax.get_yaxis_transform()  # x as a fraction of the width, y in rows
        ax.text(1.01, place, f"{row['ahead']:.2f}×", transform=right, color=INK, va="center")
