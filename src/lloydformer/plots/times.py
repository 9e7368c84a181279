"""Times of a benchmark."""

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import INK, cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vP"
_BAND, _GRID = "#F6F6F6", "#DDDDDD"
_WIDTH = 70
"""Letters of a line of the title."""
_NARROW = 300
"""Times that differ by less have ticks between the powers of ten as well."""


def times(result: Mapping[str, Any], ax: "Axes | None" = None) -> "Axes":
    """Draw the times of a benchmark on a logarithmic scale.

    A marker is the median, a line the range. On the right is the time of the best peer divided by
    ours (the first contender); without peers the ratio is beside each marker.

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
    rows = result["rows"]
    names = list(dict.fromkeys(name for row in rows.values() for name in row["contenders"]))
    for place, row in enumerate(rows.values()):
        _row(ax, place, row, names)
    ax.set_yticks(range(len(rows)), list(rows))
    ax.set(xscale="log", ylim=(len(rows) - 0.4, -0.6), xlabel=f"time per {result['per']}")
    ax.set_title(_title(result), loc="left", fontsize="medium")
    _tidy(ax)
    return ax


def _row(ax: "Axes", place: int, row: Mapping[str, Any], names: list[str]) -> None:
    """One row of the chart; a contender has the colour of its place among all names."""
    ax.axhspan(place - 0.42, place + 0.42, color=_BAND, zorder=0)
    for name, measured in row["contenders"].items():
        number = names.index(name)
        height, colour = place + 0.6 * ((number + 0.5) / len(names) - 0.5), cluster_colour(number)
        label = None if name in ax.get_legend_handles_labels()[1] else name
        ax.plot([measured["fastest"], measured["slowest"]], [height] * 2, color=colour, lw=1.5)
        ax.plot([measured["median"]], [height], _MARKERS[number % len(_MARKERS)], color=colour,
                label=label, markersize=8 if number == 0 else 6)  # fmt: skip
        if row["ahead"] is None and number > 0:
            ax.annotate(f"{measured['times']:.2f}×", (measured["slowest"], height), (8, 0),
                        textcoords="offset points", color=INK, fontsize="small",
                        va="center")  # fmt: skip
    if row["ahead"] is not None:
        ax.text(1.01, place, f"{row['ahead']:.2f}×", transform=ax.get_yaxis_transform(),
                color=INK, va="center")  # fmt: skip


def _title(result: Mapping[str, Any]) -> str:
    words = fill(f"{result['asks']}, {result['settings']['threads']} threads", _WIDTH)
    if result["ahead"] is None:
        return words
    return f"{words}\nright: the best peer, in times of ours; on average {result['ahead']:.2f}"


def _tidy(ax: "Axes") -> None:
    from matplotlib.ticker import EngFormatter, LogLocator

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
