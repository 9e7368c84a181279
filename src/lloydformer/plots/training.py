"""How training goes: the objective relative to Lloyd's, and the loss."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lloydformer.learning.training import Evaluation
from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def convergence(
    history: Sequence[Evaluation], names: Sequence[str] = (), ax: "Axes | None" = None
) -> "Axes":
    """The validation objective of each run relative to a Lloyd step, which is the dashed line."""
    ax = axes_or_new(ax)
    steps = [e.step for e in history]
    for run in range(len(history[-1].relative) if history else 0):
        name = names[run] if names else None
        ax.plot(steps, [e.relative[run] for e in history], color=cluster_colour(run), label=name)
    ax.axhline(1.0, color="black", linestyle="--", linewidth=1)
    ax.set(xlabel="training step", ylabel="objective relative to a Lloyd step", yscale="log")
    ax.spines[["top", "right"]].set_visible(False)
    if len(names) > 1:
        ax.legend(frameon=False, fontsize=8)
    return ax
