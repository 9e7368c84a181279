"""Plots of points and clusters: maps, paths of centers, sizes and silhouettes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.circuits.trace import Trace
from lloydformer.plots.axes import axes_or_new, mark_value, open_frame
from lloydformer.plots.palette import CLUSTERS, MARKERS, cluster_colour, ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# With more rows and columns, eigenvectors of their product take less than half of the time (1.3 s
# instead of 3.3 s for 2000 x 1000, in use by others). With fewer, singular vectors keep all digits.
_SMALL = 256


def cluster_marker(cluster: int) -> str:
    """Return the marker of a cluster's points."""
    # each time the twenty colours repeat, the next marker is used: 160 clusters look different
    return MARKERS[cluster // len(CLUSTERS) % len(MARKERS)]


def cluster_map(
    points: Float[Tensor, "m 2"],
    labels: Int[Tensor, " m"],
    centers: Mapping[int, tuple[float, float]],
    ax: "Axes | None" = None,
    names: Mapping[int, str] | None = None,
    outlines: Mapping[int, Float[Tensor, "o 2"]] | None = None,
) -> "Axes":
    """Draw points in the colour and marker of their cluster, and centers with their numbers.

    Parameters
    ----------
    points : torch.Tensor of shape (m, 2)
        The points in the plane, as `project_to_plane` returns them.
    labels : torch.Tensor of shape (m,)
        The cluster of each point. Points with the label -1 (trimmed) are black crosses.
    centers : mapping of int to tuple of float
        The position of each center that is shown, by the number of its cluster. There must be at
        least one.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    names : mapping of int to str or None, default=None
        Names of some clusters, shown with their numbers.
    outlines : mapping of int to torch.Tensor of shape (o, 2) or None, default=None
        Closed curves around some clusters, as the ellipses of a mixture.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on. Their limits contain all centers and, along each axis, 98 % of
        the points.
    """
    ax = axes_or_new(ax)
    x, y = points.T.numpy()
    for cluster in sorted(set(labels.tolist())):
        own = (labels == cluster).numpy()
        # Points overlap, so they are transparent; crosses are thin lines and need to be darker.
        style: dict[str, Any] = {"marker": "x", "c": "black", "linewidths": 0.8, "alpha": 0.8}
        if cluster >= 0:
            style = {"marker": cluster_marker(cluster), "c": cluster_colour(cluster)}
            style |= {"linewidths": 0, "alpha": 0.55}
        ax.scatter(x[own], y[own], s=13, **style)
    for cluster, outline in (outlines or {}).items():
        # a white line below, so that the curve is seen among points of its own colour
        for colour, width in (("white", 3.0), (cluster_colour(cluster), 1.4)):
            ax.plot(*outline.T.numpy(), color=colour, linewidth=width, zorder=4)
    for cluster, (center_x, center_y) in centers.items():
        colour = cluster_colour(cluster)
        style = {"color": ink_on(colour), "fontsize": 8, "weight": "bold", "zorder": 5}
        name = (names or {}).get(cluster)
        shape = "circle,pad=0.25" if name is None else "round,pad=0.25"
        box = {"boxstyle": shape, "edgecolor": "white", "facecolor": colour}
        words = str(cluster) if name is None else f"{cluster} {name}"
        ax.text(center_x, center_y, words, ha="center", va="center", bbox=box, **style)
    # One far outlier would squeeze all other points into a corner, so the outermost 1 % at each
    # end of an axis may lie outside of the frame.
    ends = torch.quantile(points, torch.tensor([0.01, 0.99], dtype=points.dtype), dim=0)
    positions = torch.tensor(list(centers.values()), dtype=points.dtype).to(points)
    low = torch.minimum(ends[0], positions.amin(dim=0))
    high = torch.maximum(ends[1], positions.amax(dim=0))
    # Space for the circle of a center at the edge (chosen by eye). Equal points have a range of 0,
    # for which matplotlib would warn: the limits must differ.
    margin = 0.12 * (high - low).clamp(min=1e-9)
    (left, bottom), (right, top) = (low - margin).tolist(), (high + margin).tolist()
    ax.set(xlabel="component 0", ylabel="component 1", xlim=(left, right), ylim=(bottom, top))
    return ax


def cluster_sizes(
    sizes: Mapping[int, int], ax: "Axes | None" = None, n_rows: int | None = None
) -> "Axes":
    """Draw a bar for each cluster with its size and its percentage of all rows.

    Parameters
    ----------
    sizes : mapping of int to int
        The number of rows of each cluster that is shown, by its number.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    n_rows : int or None, default=None
        Number of all rows, if `sizes` does not have every cluster; None adds up the sizes.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.
    """
    ax = axes_or_new(ax)
    places, total = range(len(sizes)), max(n_rows or sum(sizes.values()), 1)
    bars = ax.barh(places, list(sizes.values()), color=[cluster_colour(j) for j in sizes])
    captions = [f"{size:,} ({100 * size / total:.1f}%)" for size in sizes.values()]
    ax.bar_label(bars, captions, padding=3)
    ax.set(ylabel="cluster", xlabel="rows", ylim=(len(sizes) - 0.5, -0.5))
    ax.set_yticks(places, [str(j) for j in sizes])
    ax.locator_params(axis="x", nbins=4)
    ax.margins(x=0.32)  # space for the caption right of the longest bar
    return open_frame(ax)


def silhouette_bands(
    values: Float[Tensor, " m"],
    labels: Int[Tensor, " m"],
    ax: "Axes | None" = None,
    mean: float | None = None,
) -> "Axes":
    """Draw the sorted silhouettes of each cluster in bands of equal height, and their mean.

    Parameters
    ----------
    values : torch.Tensor of shape (m,)
        The silhouette of each point, from -1 to 1.
    labels : torch.Tensor of shape (m,)
        The cluster of each point.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    mean : float or None, default=None
        The mean to mark, if `values` are those of some clusters only; None takes their mean.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.
    """
    ax = axes_or_new(ax)
    clusters = sorted(set(labels.tolist()))
    for band, cluster in enumerate(clusters):
        own = values[labels == cluster].sort(descending=True).values
        own = torch.cat([own, own[-1:]])  # an area needs two values: a cluster may have one point
        # bands are 1 apart: 0.84 of it leaves a gap between them
        heights = torch.linspace(band - 0.42, band + 0.42, len(own))
        ax.fill_betweenx(heights.numpy(), 0, own.numpy(), color=cluster_colour(cluster), lw=0.5)
    mean = values.mean().item() if mean is None else mean
    mark_value(ax, mean, f"mean {mean:.2f}")
    ax.set_yticks(range(len(clusters)), [str(cluster) for cluster in clusters])
    ax.set(xlabel="silhouette", ylabel="cluster", ylim=(len(clusters) - 0.5, -0.5))
    # 0 is always inside of the frame, and so is the lowest value
    ax.set_xlim(min(values.min().item() - 0.02, -0.1), 1)
    return open_frame(ax)


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
    if trace.points.ndim > 2:
        raise ValueError(
            f"trace: found a batch of {trace.points.shape[0]} problems; "
            "run the circuit on one of them, points (n, d)"
        )
    ax = axes_or_new(ax)
    x, y = project_to_plane(trace.points, dims).T.numpy()
    colours = [cluster_colour(label) for label in trace.labels[-1].tolist()]
    ax.scatter(x, y, s=14, c=colours, alpha=0.5, linewidths=0)
    centers = project_to_plane(trace.centers, dims, trace.points)
    for cluster, path in enumerate(centers.unbind(dim=1)):
        x, y = path.T.numpy()
        colour = cluster_colour(cluster)
        edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.8, "color": colour}
        # A white line below the coloured one keeps paths apart where they cross. The order of
        # `zorder` keeps the start and the end visible if all layers lie on one spot.
        ax.plot(x, y, color="white", linewidth=3.2, zorder=3, solid_joinstyle="round")
        ax.plot(x, y, color=colour, linewidth=1.6, zorder=4, solid_joinstyle="round")
        ax.plot(x[1:-1], y[1:-1], "^", markersize=6, zorder=5, **edge)
        ax.plot(x[:1], y[:1], "o", markersize=8, zorder=6, **edge)
        ax.plot(x[-1:], y[-1:], "^", markersize=12, zorder=7, **edge)
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
    """Return the rows in two dimensions, in float64.

    Parameters
    ----------
    rows : torch.Tensor of shape (..., d)
        The rows to project; of shape (n, d) if their own principal components are used.
    dims : tuple of int or None, default=None
        Two features to keep. None projects to the first two principal components; rows with one or
        two features stay as they are, one feature with a second coordinate of 0.
    points : torch.Tensor of shape (n, d) or None, default=None
        Points whose principal components are used; None uses those of the rows.

    Returns
    -------
    torch.Tensor of shape (..., 2)
        The projected rows.
    """
    rows = rows.detach().cpu().double()
    n_features = rows.shape[-1]
    if dims is not None:
        return rows[..., list(dims)]
    if n_features <= 2:
        return torch.nn.functional.pad(rows, (0, 2 - n_features))
    origin, components = principal_plane(rows if points is None else points.detach().cpu().double())
    return (rows - origin) @ components.T


def principal_plane(
    points: Float[Tensor, "m d"],
) -> tuple[Float[Tensor, " d"], Float[Tensor, "2 d"]]:
    """Return the mean of the points and their first two principal components.

    A direction without variance is arbitrary: the first component of a single point, for example.
    A single point or feature has no second component, which is then zero.
    """
    mean = points.mean(dim=0)
    centered = points - mean
    if min(points.shape) <= _SMALL:
        _, _, components = torch.linalg.svd(centered, full_matrices=False)
    else:
        components = _largest_components(centered)
    plane = torch.zeros(2, points.shape[1], dtype=points.dtype)
    plane[: len(components)] = components[:2]
    return mean, plane


def _largest_components(centered: Float[Tensor, "m d"]) -> Float[Tensor, "2 d"]:
    """Return the first two principal components from the eigenvectors of the smaller product."""
    unit = centered / centered.abs().max().clamp(min=1e-300)  # squares must not overflow
    if len(unit) >= unit.shape[1]:
        return torch.linalg.eigh(unit.T @ unit).eigenvectors[:, [-1, -2]].T
    components = torch.linalg.eigh(unit @ unit.T).eigenvectors[:, [-1, -2]].T @ unit
    return components / components.norm(dim=1, keepdim=True).clamp(min=1e-300)
