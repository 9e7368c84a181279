"""fig:numerical_validation: Lloyd's algorithm, the transformer, and below their differences."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits.trace import Trace
from lloydformer.paper.artefact import Picture, Record
from lloydformer.plots.palette import CLUSTERS, INK, cluster_colour

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BENEATH = 300
"""Number of points drawn beneath the paths of the centers; more would hide the paths."""
_PALE = "#DDDDDD"
"""Points whose labels are the same."""


def pictures(result: Record) -> list[Picture]:
    """One figure: objective, paths of the centers and assignments of both, and the differences."""
    run = result["run"]
    differ = len(run["differing"]["points"])
    return [
        Picture(
            "numerical-validation", _figure(run),
            "Lloyd's algorithm (A to C) and the transformer with γ = 10⁴ (D to F), "
            f"n = {run['of']}, d = 2, k = 5: the objective, the paths of the centers from circle "
            "to triangles, and the assignments after 10 layers "
            f"({len(run['points'])} of the points are drawn). Beyond the paper, their "
            "differences: (G) of the objective, as a part of Lloyd's, (H) the largest distance of "
            "a center to Lloyd's, both on a logarithmic scale, and (I) the points whose final "
            f"labels differ ({differ} of all). There the left half of a circle has the colour of "
            "Lloyd's label, the right half that of the transformer's; lines are Lloyd's borders.",
        )
    ]  # fmt: skip


def _figure(run: Record) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 11.1), layout="constrained")
    grid = figure.subplots(3, 3)
    points = torch.tensor(run["points"])
    for axes, who in zip(grid, ("lloyd", "transformer"), strict=False):
        _panels(axes, points, run[who])
        axes[0].set_ylabel(f"{'Lloyd' if who == 'lloyd' else 'transformer'}\nk-means objective")
        axes[0].set_xlabel("iteration" if who == "lloyd" else "layer")
    _differences(grid[2], run)
    for ax, letter in zip(grid.flat, "ABCDEFGHI", strict=True):
        ax.set_title(letter, loc="left", weight="bold")
    return figure


def _panels(axes: np.ndarray, points: Tensor, shown: Record) -> None:
    from lloydformer.plots.clusters import cluster_map
    from lloydformer.plots.curves import descent
    from lloydformer.plots.trajectories import trajectories

    centers, labels = torch.tensor(shown["centers"]), torch.tensor([*map(int, shown["labels"])])
    few = torch.nn.functional.one_hot(labels[:_BENEATH], centers.shape[1]).float()[None]
    descent(shown["objective"], axes[0])
    trajectories(Trace(points[:_BENEATH], centers, few, points[:1], (), {}), axes[1])
    last = {j: (center[0], center[1]) for j, center in enumerate(centers[-1].tolist())}
    cluster_map(points, labels, last, axes[2])
    for ax in axes[1:]:
        _square(ax)


def _differences(axes: np.ndarray, run: Record) -> None:
    """Objective and centers layer by layer, and the points whose final labels differ."""
    lloyd, transformer = (np.array(run[who]["objective"]) for who in ("lloyd", "transformer"))
    relative = np.abs(transformer - lloyd) / lloyd
    _logarithmic(axes[0], relative, "difference\nof the objective, relative")
    _logarithmic(axes[1], np.array(run["apart"]), "largest distance of a center")
    _turned(axes[2], run)


def _logarithmic(ax: "Axes", values: np.ndarray, name: str) -> None:
    """A value for each layer; the initial centers, which are the same, are left out."""
    ax.plot(range(1, len(values)), values[1:], "o-", markersize=4, color=CLUSTERS[0])
    ax.set(yscale="log", xlabel="layer", ylabel=name, xlim=(-0.5, len(values) - 0.5))
    if (seen := values[1:][values[1:] > 0]).size:
        decades = np.log10([seen.min(), seen.max()])
        ax.set_ylim(10.0 ** np.floor(decades[0] - 0.2), 10.0 ** np.ceil(decades[1] + 0.2))
    ax.spines[["top", "right"]].set_visible(False)


def _turned(ax: "Axes", run: Record) -> None:
    """Points whose final labels differ, in both colours, among the others and Lloyd's borders."""
    x, y = np.array(run["points"]).T
    ax.scatter(x, y, s=8, c=_PALE, linewidths=0)
    _borders(ax, np.array(run["lloyd"]["centers"][-2]))
    found = run["differing"]
    for (across, up), one, other in zip(
        found["points"], found["lloyd"], found["transformer"], strict=True
    ):
        ax.plot(across, up, "o", markersize=9, fillstyle="left", color=cluster_colour(one),
                markerfacecoloralt=cluster_colour(other), markeredgecolor=INK)  # fmt: skip
    _square(ax)


def _borders(ax: "Axes", centers: np.ndarray) -> None:
    """Lines between the points that are nearest to different centers."""
    ticks = np.linspace(-0.03, 1.03, 400)
    rows = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    nearest = squared_distances(rows, centers).argmin(axis=1).reshape(400, 400)
    for cluster in range(len(centers)):
        ax.contour(ticks, ticks, nearest == cluster, levels=[0.5], colors=INK, linewidths=0.6)


def _square(ax: "Axes") -> None:
    ax.set(xlabel="feature 0", ylabel="feature 1", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.set_aspect("equal", adjustable="box")
