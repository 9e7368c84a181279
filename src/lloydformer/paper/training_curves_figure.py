"""The form of fig:tr-cvg-lambda and fig:tr-cvg-vary: two rows, one column for each setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.training_curves import TrainingSetting
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.ribbons import ribbon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"proposed": "$d_{emb} = d + k$", "ablation": "$d_{emb} = d$"}


def curves_picture(
    result: Record,
    settings: Sequence[TrainingSetting],
    titles: Sequence[str],
    name: str,
    about: str,
) -> Picture:
    """The curves of these settings; `about` begins the caption."""
    caption = (
        f"{about}: training loss above, validation objective relative to one Lloyd step below "
        f"(dashed: 1); lines are medians and ribbons quartiles of {result['n_trials']} trials."
    )
    return Picture(name, _figure(result, settings, titles), caption)


def _figure(result: Record, settings: Sequence[TrainingSetting], titles: Sequence[str]) -> "Figure":
    """Training loss above, relative validation loss below."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5), layout="constrained")
    above, below = figure.subplots(2, len(settings), sharex=True, sharey="row")
    for upper, lower, setting, title in zip(above, below, settings, titles, strict=True):
        _draw(upper, result, setting, "loss")
        _draw(lower, result, setting, "relative")
        lower.axhline(1.0, color="black", linestyle="--", linewidth=1)
        upper.set_title(title, fontsize=10)
        lower.set_xlabel("training step")
    above[0].set_ylabel("training loss")
    below[0].set_ylabel("relative validation loss")
    handles, names = above[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw(ax: "Axes", result: Record, setting: TrainingSetting, what: str) -> None:
    for number, (which, name) in enumerate(NAMES.items()):
        low, middle, high = result["curves"][setting.name][which][what]
        ribbon(result["steps"], middle, low, high, ax, name, number)
    ax.set_yscale("log")
    _decimal_ticks(ax)
    ax.set_xticks([0, 5000, 10000], ["0", "5k", "10k"])


def _decimal_ticks(ax: "Axes") -> None:
    """Decimal numbers on the logarithmic axis, not powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 4, 6)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
