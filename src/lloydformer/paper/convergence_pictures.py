"""A figure of fig:tr-cvg-lambda or fig:tr-cvg-vary: two rows, a column for each setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lloydformer.paper.artefact import Found
from lloydformer.paper.convergence import Setting
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.ribbons import ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"proposed": "$d_{emb} = d + k$", "ablation": "$d_{emb} = d$"}


def figure(result: Found, settings: Sequence[Setting], titles: Sequence[str]) -> "Figure":
    """Training loss above, relative validation loss below; a column for each setting."""
    require_matplotlib()
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(11, 5), layout="constrained")
    above, below = drawing.subplots(2, len(settings), sharex=True, sharey="row")
    for ax, low, setting, title in zip(above, below, settings, titles, strict=True):
        _draw(ax, result, setting, "loss")
        _draw(low, result, setting, "relative")
        low.axhline(1.0, color="black", linestyle="--", linewidth=1)
        ax.set_title(title, fontsize=10)
        low.set_xlabel("training step")
    above[0].set_ylabel("training loss")
    below[0].set_ylabel("relative validation loss")
    handles, names = above[0].get_legend_handles_labels()
    drawing.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return drawing


def _draw(ax: "Axes", result: Found, setting: Setting, what: str) -> None:
    for number, (which, name) in enumerate(NAMES.items()):
        low, middle, high = result["curves"][setting.name][which][what]
        ribbon(result["steps"], middle, low, high, ax, name, number)
    ax.set_yscale("log")
    _plain_ticks(ax)
    ax.set_xticks([0, 5000, 10000], ["0", "5k", "10k"])


def _plain_ticks(ax: "Axes") -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 6)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
