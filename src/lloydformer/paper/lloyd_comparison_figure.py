"""Panels of fig:trf-train and fig:mix-res: the objective over the steps, with ribbons."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lloydformer.paper.artefact import Record
from lloydformer.paper.lloyd_comparison import NAMES
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.ribbons import ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def panels(curves: Mapping[str, Record], shared: bool = False) -> "Figure":
    """One panel for each title: lines are means, ribbons go from minimum to maximum.

    shared: use one vertical axis for all panels.
    """
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), layout="constrained")
    row: Sequence[Axes] = figure.subplots(1, len(curves), sharey=shared)
    for ax, (title, found) in zip(row, curves.items(), strict=True):
        _draw(ax, found)
        ax.set_title(title, fontsize=10)
    row[0].set_ylabel("log k-means objective")
    handles, names = row[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw(ax: "Axes", found: Record) -> None:
    for number, (who, name) in enumerate(NAMES.items()):
        curve = found[who]
        mean, low, high = (curve[key] for key in ("mean", "low", "high"))
        ribbon(range(len(mean)), mean, low, high, ax, name, number, dashed=number > 0)
    ax.locator_params(axis="x", integer=True)
    ax.set_xlabel("clustering step")
