"""The objective over the layers of a circuit."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lloydformer.circuits.trace import Trace
from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dv<>P"


def objective_curve(
    traces: Trace | Mapping[str, Trace], ax: "Axes | None" = None, relative: bool = False
) -> "Axes":
    r"""Draw the k-means objective (eq:kmeans-dc) before each layer and after the last one.

    Parameters
    ----------
    traces : Trace or mapping of str to Trace
        One trace, or several by name. Of a batch the mean is shown.
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
    named = {"": traces} if isinstance(traces, Trace) else traces
    for number, (name, trace) in enumerate(named.items()):
        _curve(ax, number, name, trace, relative)
    ax.set_xlabel("layers")
    ax.set_ylabel("objective / objective at the start" if relative else "k-means objective")
    ax.locator_params(axis="x", integer=True)
    if any(named):
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return ax


def _curve(ax: "Axes", number: int, name: str, trace: Trace, relative: bool) -> None:
    """Draw one curve. Later curves are thinner and every other one dashed, to show overlaps."""
    values = trace.objective.detach().cpu()
    values = values / values[..., :1] if relative else values
    mean = values.reshape(-1, values.shape[-1]).mean(dim=0)
    ax.plot(range(len(mean)), mean.numpy(), label=name or None, color=cluster_colour(number),
            linestyle=("-", "--")[number % 2], linewidth=max(3.5 - 0.4 * number, 1.2),
            marker=_MARKERS[number % 8], markersize=max(7 - 0.6 * number, 3))  # fmt: skip
