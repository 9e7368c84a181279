"""The paths that centers take through the points, layer by layer."""

from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.trace import Trace
from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def trajectories(
    trace: Trace, ax: "Axes | None" = None, dims: tuple[int, int] | None = None
) -> "Axes":
    """Points in the colour of their last label, and each center's way from circle to triangle.

    As in fig:numerical_validation: a circle where a center starts, a triangle after each layer,
    the last one larger. Of more than two features the picture shows `dims`, or without them the
    points' first two principal components.
    """
    _refuse_batch(trace)
    ax = axes_or_new(ax)
    points, centers = plane(trace.points, dims), plane(trace.centers, dims, trace.points)
    colours = [cluster_colour(label) for label in trace.labels[-1].tolist()]
    x, y = points.T.numpy()
    ax.scatter(x, y, s=14, c=colours, alpha=0.5, linewidths=0)
    for cluster, path in enumerate(centers.unbind(dim=1)):
        _path(ax, path, cluster_colour(cluster))
    ax.set_aspect("equal", adjustable="datalim")
    name = "component" if dims is None and trace.points.shape[-1] > 2 else "feature"
    first, second = dims or (0, 1)
    ax.set(xlabel=f"{name} {first}", ylabel=f"{name} {second}")
    return ax


def plane(
    rows: Float[Tensor, "*b d"],
    dims: tuple[int, int] | None = None,
    points: Float[Tensor, "n d"] | None = None,
) -> Float[Tensor, "*b 2"]:
    """The rows in two dimensions: `dims`, or the first two principal components of `points`."""
    rows = rows.detach().cpu().double()
    n_features = rows.shape[-1]
    if dims is not None:
        return rows[..., list(dims)]
    if n_features <= 2:
        return torch.nn.functional.pad(rows, (0, 2 - n_features))
    base = rows if points is None else points.detach().cpu().double()
    origin = base.mean(dim=0)
    _, _, components = torch.linalg.svd(base - origin, full_matrices=False)
    return (rows - origin) @ components[:2].T


def _path(ax: "Axes", path: Float[Tensor, "s 2"], colour: str) -> None:
    x, y = path.T.numpy()
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8, "color": colour}
    ax.plot(x, y, color="white", linewidth=3.2, zorder=3, solid_joinstyle="round")
    ax.plot(x, y, color=colour, linewidth=1.6, zorder=4, solid_joinstyle="round")
    ax.plot(x[1:-1], y[1:-1], "^", markersize=6, zorder=5, **edge)
    ax.plot(x[:1], y[:1], "o", markersize=8, zorder=6, **edge)
    ax.plot(x[-1:], y[-1:], "^", markersize=12, zorder=7, **edge)


def _refuse_batch(trace: Trace) -> None:
    if trace.points.ndim > 2:
        raise ValueError(
            f"trace: found a batch of {trace.points.shape[0]} problems; "
            "run the circuit on one of them, points (n, d)"
        )
