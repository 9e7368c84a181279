"""fig:numerical_validation: Lloyd's algorithm above, the transformer below."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits.trace import Trace
from lloydformer.paper.artefact import Picture, Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BENEATH = 300
"""Number of points drawn beneath the paths of the centers; more would hide the paths."""


def pictures(result: Record) -> list[Picture]:
    """One figure: objective, paths of the centers, and assignments of both."""
    run = result["run"]
    return [
        Picture(
            "numerical-validation", _figure(run),
            "Lloyd's algorithm (A to C) and the transformer with γ = 10⁴ (D to F), n = 10000, "
            "d = 2, k = 5: the objective, the paths of the centers from circle to triangles, and "
            f"the assignments after 10 layers ({len(run['points'])} of the points are drawn).",
        )
    ]  # fmt: skip


def _figure(run: Record) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.4), layout="constrained")
    rows = zip(figure.subplots(2, 3), ("ABC", "DEF"), ("lloyd", "transformer"), strict=True)
    for axes, letters, who in rows:
        _panels(axes, torch.tensor(run["points"]), run[who])
        axes[0].set_ylabel(f"{'Lloyd' if who == 'lloyd' else 'transformer'}\nk-means objective")
        axes[0].set_xlabel("iteration" if who == "lloyd" else "layer")
        for ax, letter in zip(axes, letters, strict=True):
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
        ax.set(xlabel="feature 0", ylabel="feature 1", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
        ax.set_aspect("equal", adjustable="box")
