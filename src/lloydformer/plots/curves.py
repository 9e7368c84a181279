"""Curves over the iterations of a fit, or over the number of clusters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def descent(history: Sequence[float], ax: "Axes | None" = None) -> "Axes":
    """Draw the objective before each iteration and at the end."""
    ax = axes_or_new(ax)
    marker = "o" if len(history) <= 40 else ""
    ax.plot(range(len(history)), history, marker=marker, markersize=4, color=cluster_colour(0))
    ax.set(xlabel="iteration", ylabel="objective")
    return _simple_frame(ax)


def over_numbers(
    numbers: Sequence[int],
    values: Sequence[float | None],
    name: str,
    chosen: int,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a value for each number of clusters, with a line at the chosen number.

    Values that are None are left out.
    """
    ax = axes_or_new(ax)
    shown = [(k, value) for k, value in zip(numbers, values, strict=True) if value is not None]
    ax.plot(*zip(*shown, strict=True), marker="o", markersize=4, color=cluster_colour(0))
    ax.axvline(chosen, color="black", linestyle="--", linewidth=1)
    ax.annotate(f"k = {chosen}", (chosen, 1.0), xycoords=("data", "axes fraction"),
                xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
    ax.set(xlabel="number of clusters k", ylabel=name)
    return _simple_frame(ax)


_LARGE = 1e4
"""Numbers from here on are written as 15k or 4.5M."""


def _simple_frame(ax: "Axes") -> "Axes":
    from matplotlib.ticker import EngFormatter

    if max(map(abs, ax.get_ylim())) >= _LARGE:  # instead of a factor above the axis
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
    ax.locator_params(axis="x", integer=True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
