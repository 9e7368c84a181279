"""The objective during training, relative to Lloyd's algorithm."""

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
    """Draw the validation objective of each run, relative to a step of Lloyd's algorithm.

    The dashed line at 1 is the step of Lloyd's algorithm.

    Parameters
    ----------
    history : sequence of lloydformer.learning.Evaluation
        The evaluations of a training, of one or several runs.
    names : sequence of str, default=()
        Names of the runs for the legend.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    See Also
    --------
    lloydformer.learning.Evaluation : One evaluation.

    Examples
    --------
    >>> from lloydformer import plots
    >>> from lloydformer.learning import Evaluation
    >>> history = [
    ...     Evaluation(50, 100, (9.0,), (2.0,), (0.01,)),
    ...     Evaluation(100, 100, (5.0,), (1.2,), (0.01,)),
    ... ]
    >>> plots.convergence(history).lines[0].get_ydata().tolist()
    [2.0, 1.2]
    """
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
