"""The paths of centers among the points, layer by layer."""

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
    """Draw points in the colour of their last label, and the path of each center.

    As in fig:numerical_validation: a circle where a center starts, a triangle after each layer,
    the last one larger.

    Parameters
    ----------
    trace : Trace
        The run of a circuit on one problem, not on a batch.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    dims : tuple of int or None, default=None
        Two features to show. None shows the first two principal components of the points if
        there are more than two features.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    Raises
    ------
    ValueError
        If the trace is that of a batch.

    See Also
    --------
    objective_curve : The objective of the same run.

    Examples
    --------
    >>> import torch, lloydformer as lf
    >>> from lloydformer import plots
    >>> points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [10.0, 0.0], [12.0, 0.0]])
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=2)
    >>> ax = plots.trajectories(circuit(points, points[[0, 2]], n_layers=2))
    >>> ax.get_xlabel()
    'feature 0'
    """
    _check_single_problem(trace)
    ax = axes_or_new(ax)
    points = project_to_plane(trace.points, dims)
    centers = project_to_plane(trace.centers, dims, trace.points)
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


def project_to_plane(
    rows: Float[Tensor, "*b d"],
    dims: tuple[int, int] | None = None,
    points: Float[Tensor, "n d"] | None = None,
) -> Float[Tensor, "*b 2"]:
    """Return the rows in two dimensions: `dims`, or the principal components of `points`."""
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


def _check_single_problem(trace: Trace) -> None:
    if trace.points.ndim > 2:
        raise ValueError(
            f"trace: found a batch of {trace.points.shape[0]} problems; "
            "run the circuit on one of them, points (n, d)"
        )
