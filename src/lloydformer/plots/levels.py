"""Means over the levels of a parameter, and over pairs of parameters."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lloydformer.plots.axes import axes_or_new, colormap
from lloydformer.plots.palette import WEIGHT, cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

_MARKERS = "os^D"


def over_levels(
    levels: Sequence[str],
    means: Mapping[str, Sequence[float]],
    deviations: Mapping[str, Sequence[float]],
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a line for each name over the levels, with error bars; lines are slightly offset."""
    ax = axes_or_new(ax)
    for number, (name, values) in enumerate(means.items()):
        places = np.arange(len(levels)) + 0.16 * (number - (len(means) - 1) / 2)
        ax.errorbar(places, values, deviations[name], label=name, color=cluster_colour(number),
                    marker=_MARKERS[number % 4], markersize=4, linewidth=1.4, elinewidth=0.8,
                    capsize=2)  # fmt: skip
    ax.set_xticks(range(len(levels)), levels)
    ax.axhline(0, color="black", linewidth=0.6, linestyle=":")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def pair_matrix(
    values: Sequence[Sequence[float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    top: float,
    ax: "Axes | None" = None,
) -> "AxesImage":
    """Draw a matrix of means from white at 0 to dark at `top`; None is left blank."""
    ax = axes_or_new(ax)
    image = ax.imshow(np.asarray(values, float), cmap=colormap(WEIGHT), vmin=0.0, vmax=top,
                      origin="lower", aspect="auto", interpolation="nearest")  # fmt: skip
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    return image
