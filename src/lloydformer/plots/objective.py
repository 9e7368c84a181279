"""How the objective falls from layer to layer."""

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
    r"""The k-means objective (eq:kmeans-dc) before each layer and after the last one.

    traces: one, or several by name. relative: as a share of each one's objective at the start,
    for runs on different data. Of a batch it shows the mean.
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
    """Later curves are thinner and every other one is dashed: what lies beneath is still seen."""
    values = trace.objective.detach().cpu()
    values = values / values[..., :1] if relative else values
    mean = values.reshape(-1, values.shape[-1]).mean(dim=0)
    ax.plot(range(len(mean)), mean.numpy(), label=name or None, color=cluster_colour(number),
            linestyle=("-", "--")[number % 2], linewidth=max(3.5 - 0.4 * number, 1.2),
            marker=_MARKERS[number % 8], markersize=max(7 - 0.6 * number, 3))  # fmt: skip
