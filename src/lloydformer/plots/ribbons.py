"""A curve with a band around it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def ribbon(
    places: Sequence[float | int],
    middle: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    ax: "Axes | None" = None,
    name: str | None = None,
    number: int = 0,
    dashed: bool = False,
) -> "Axes":
    """Draw a line through the middles, and a band from low to high."""
    ax = axes_or_new(ax)
    colour = cluster_colour(number)
    ax.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(places, middle, color=colour, label=name, linewidth=1.8,
            linestyle="--" if dashed else "-")  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    return ax
