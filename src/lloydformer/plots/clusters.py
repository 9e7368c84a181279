"""Plots of a clustering: sizes, a map of the points, and silhouettes."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.plots.axes import axes_or_new
from lloydformer.plots.palette import CLUSTERS, cluster_colour, ink_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dv<>P"
"""Markers; the next one is used each time the colours repeat."""


def cluster_marker(cluster: int) -> str:
    """Return the marker of a cluster's points."""
    return _MARKERS[cluster // len(CLUSTERS) % len(_MARKERS)]


def cluster_sizes(
    sizes: Mapping[int, int], ax: "Axes | None" = None, n_rows: int | None = None
) -> "Axes":
    """Draw a bar for each cluster with its size and its percentage of all rows."""
    ax = axes_or_new(ax)
    places, total = range(len(sizes)), max(n_rows or sum(sizes.values()), 1)
    bars = ax.barh(places, list(sizes.values()), color=[cluster_colour(j) for j in sizes])
    ax.bar_label(bars, [f"{size:,} ({100 * size / total:.1f}%)" for size in sizes.values()],
                 padding=3)  # fmt: skip
    ax.set(ylabel="cluster", xlabel="rows", ylim=(len(sizes) - 0.5, -0.5))
    ax.set_yticks(places, [str(j) for j in sizes])
    ax.locator_params(axis="x", nbins=4)
    ax.margins(x=0.32)  # space for the texts
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def cluster_map(
    points: Float[Tensor, "m 2"],
    labels: Int[Tensor, " m"],
    centers: Mapping[int, tuple[float, float]],
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw points in the colour and marker of their cluster, and centers with their numbers.

    Points with the label -1 (trimmed) are black crosses. The limits of the axes ignore the 2 % of
    points that are farthest out.
    """
    ax = axes_or_new(ax)
    x, y = points.T.numpy()
    for cluster in sorted(set(labels.tolist())):
        own = (labels == cluster).numpy()
        style = {"marker": "x", "c": "black", "linewidths": 0.8, "alpha": 0.8}
        if cluster >= 0:
            style = {"marker": cluster_marker(cluster), "c": cluster_colour(cluster),
                     "linewidths": 0, "alpha": 0.55}  # fmt: skip
        ax.scatter(x[own], y[own], s=13, **style)  # type: ignore[arg-type]
    for cluster, (across, up) in centers.items():
        colour = cluster_colour(cluster)
        ax.text(across, up, str(cluster), color=ink_on(colour), fontsize=8, weight="bold",
                ha="center", va="center", zorder=5,
                bbox={"boxstyle": "circle,pad=0.25", "edgecolor": "white", "facecolor": colour}
                )  # fmt: skip
    low, high = _edges(points, torch.tensor(list(centers.values()), dtype=points.dtype).to(points))
    ax.set(xlabel="component 1", ylabel="component 2", xlim=(low[0], high[0]))
    ax.set_ylim(low[1], high[1])
    return ax


def _edges(points: Tensor, centers: Tensor) -> tuple[list[float], list[float]]:
    """Return limits that contain all centers and 98 % of the points along each axis."""
    ends = torch.quantile(points, torch.tensor([0.01, 0.99], dtype=points.dtype), dim=0)
    low = torch.minimum(ends[0], centers.amin(dim=0))
    high = torch.maximum(ends[1], centers.amax(dim=0))
    margin = 0.12 * (high - low).clamp(min=1e-9)
    return (low - margin).tolist(), (high + margin).tolist()


def silhouette_blades(
    values: Float[Tensor, " m"],
    labels: Int[Tensor, " m"],
    ax: "Axes | None" = None,
    mean: float | None = None,
) -> "Axes":
    """Draw the sorted silhouettes of each cluster in bands of equal height, and their mean."""
    ax = axes_or_new(ax)
    found = sorted(set(labels.tolist()))
    for band, cluster in enumerate(found):
        own = values[labels == cluster].sort(descending=True).values
        own = torch.cat([own, own[-1:]])  # so that a single point has a band
        heights = torch.linspace(band - 0.42, band + 0.42, len(own))
        ax.fill_betweenx(heights.numpy(), 0, own.numpy(), color=cluster_colour(cluster), lw=0.5)
    mean = values.mean().item() if mean is None else mean
    ax.axvline(mean, color="black", linestyle="--", linewidth=1)
    ax.annotate(f"mean {mean:.2f}", (mean, 1.0), xycoords=("data", "axes fraction"),
                xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9)  # fmt: skip
    ax.set_yticks(range(len(found)), [str(cluster) for cluster in found])
    ax.set(xlabel="silhouette", ylabel="cluster", ylim=(len(found) - 0.5, -0.5))
    ax.set_xlim(min(values.min().item() - 0.02, -0.1), 1)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plane_of(points: Float[Tensor, "m d"]) -> tuple[Float[Tensor, " d"], Float[Tensor, "2 d"]]:
    """Return the mean of the points and their first two principal components."""
    middle = points.mean(dim=0)
    _, _, components = torch.linalg.svd(points - middle, full_matrices=False)
    wanted = torch.zeros(2, points.shape[1], dtype=points.dtype)
    wanted[: len(components)] = components[:2]
    return middle, wanted
