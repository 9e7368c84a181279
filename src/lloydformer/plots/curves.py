"""Curves over layers, iterations, training steps, numbers of clusters and levels of a parameter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lloydformer.circuits.trace import Trace
from lloydformer.learning.trainer import Evaluation
from lloydformer.plots.axes import axes_or_new, mark_value, open_frame
from lloydformer.plots.palette import MARKERS, cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# More markers than this merge into a thick line at the width of a page's figure (chosen by eye).
_MAX_MARKERS = 40

# From here on numbers are written as 15k or 4.5M; matplotlib would write a factor above the axis.
_LARGE = 1e4


def objective_curve(
    traces: Trace | Mapping[str, Trace], ax: "Axes | None" = None, relative: bool = False
) -> "Axes":
    r"""Draw the k-means objective (eq:kmeans-dc) before each layer and after the last one.

    Parameters
    ----------
    traces : Trace or mapping of str to Trace
        One trace, or several by name. For a batch the mean is shown.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    relative : bool, default=False
        Whether each objective is divided by its initial value, to compare runs on different data.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    See Also
    --------
    lloydformer.Trace.objective : The values that are drawn.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> from lloydformer import plots
    >>> points = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)
    >>> ax = plots.objective_curve(circuit(points, points[:2], n_layers=2))
    >>> ax.lines[0].get_ydata().tolist()
    [80.0, 17.0, 8.5]
    """
    ax = axes_or_new(ax)
    by_name = {"": traces} if isinstance(traces, Trace) else traces
    for number, (name, trace) in enumerate(by_name.items()):
        values = trace.objective.detach().cpu()
        values = values / values[..., :1] if relative else values
        mean = values.reshape(-1, values.shape[-1]).mean(dim=0)
        # Later curves are thinner and every other one dashed: where curves coincide, as those of
        # lloyd and lloyd_dot do, all of them are seen.
        style: dict[str, Any] = {"color": cluster_colour(number), "label": name or None}
        style |= {"linestyle": ("-", "--")[number % 2], "linewidth": max(3.5 - 0.4 * number, 1.2)}
        marker = MARKERS[number % len(MARKERS)]
        size = max(7 - 0.6 * number, 3)
        ax.plot(range(len(mean)), mean.numpy(), marker=marker, markersize=size, **style)
    ax.set_xlabel("layers")
    ax.set_ylabel("objective / objective at the start" if relative else "k-means objective")
    ax.locator_params(axis="x", integer=True)
    if any(by_name):
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


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
    if len(names) > 1:
        ax.legend(frameon=False, fontsize=8)
    return open_frame(ax)


def history_curve(history: Sequence[float], ax: "Axes | None" = None) -> "Axes":
    """Draw the objective before each iteration and at the end."""
    ax = axes_or_new(ax)
    marker = "o" if len(history) <= _MAX_MARKERS else ""
    ax.plot(range(len(history)), history, marker=marker, markersize=4, color=cluster_colour(0))
    ax.set(xlabel="iteration", ylabel="objective")
    return _format_ticks(ax)


def criterion_curve(
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
    mark_value(ax, chosen, f"k = {chosen}")
    ax.set(xlabel="number of clusters k", ylabel=name)
    return _format_ticks(ax)


def _format_ticks(ax: "Axes") -> "Axes":
    """Write large values short and only whole numbers below the axis, and open the frame."""
    from matplotlib.ticker import EngFormatter

    if max(map(abs, ax.get_ylim())) >= _LARGE:
        ax.yaxis.set_major_formatter(EngFormatter(sep=""))
    ax.locator_params(axis="x", integer=True)
    return open_frame(ax)


def level_curves(
    levels: Sequence[str],
    means: Mapping[str, Sequence[float]],
    deviations: Mapping[str, Sequence[float]],
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw a line for each name over the levels of a parameter, with error bars."""
    ax = axes_or_new(ax)
    for number, (name, values) in enumerate(means.items()):
        # Lines are slightly offset, so that error bars at the same level do not cover each other.
        offset = 0.16 * (number - (len(means) - 1) / 2)
        places = np.arange(len(levels)) + offset
        style: dict[str, Any] = {"color": cluster_colour(number), "linewidth": 1.4}
        style |= {"marker": MARKERS[number % 4], "markersize": 4, "elinewidth": 0.8, "capsize": 2}
        ax.errorbar(places, values, deviations[name], label=name, **style)
    ax.set_xticks(range(len(levels)), levels)
    ax.axhline(0, color="black", linewidth=0.6, linestyle=":")
    return open_frame(ax)


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
    colour, style = cluster_colour(number), "--" if dashed else "-"
    ax.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(places, middle, color=colour, label=name, linewidth=1.8, linestyle=style)
    return open_frame(ax)
