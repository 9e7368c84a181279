"""Draws docs/pictures/cluster-sizes.png: `python docs/pictures/cluster-sizes.py`.

The rows of docs/cluster-sizes.md in four clusters: without bounds, capped, and balanced.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import lloydformer as lf
from lloydformer.plots.palette import CLUSTERS


def problem() -> np.ndarray:
    """The rows of docs/cluster-sizes.md."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1000, 2)) * [2.0, 1.0]
    rows[:600] = rows[:600] / 4 + [3.0, 1.0]
    return rows


def draw(path: Path) -> None:
    rows = problem()
    models = {
        "k-means": lf.KMeans(4, random_state=0),
        "at most 300 rows": lf.ConstrainedKMeans(4, size_max=300, random_state=0),
        "balanced": lf.ConstrainedKMeans(4, size_min=1 / 4, size_max=1 / 4, random_state=0),
    }
    figure = Figure(figsize=(9, 2.2), layout="constrained")
    for ax, (name, model) in zip(figure.subplots(1, 3), models.items(), strict=True):
        labels, centers = model.fit(rows).labels_, model.cluster_centers_
        order = np.argsort(np.argsort(centers[:, 0]))  # colours from left to right in each panel
        ax.scatter(*rows.T, s=4, c=[CLUSTERS[order[j]] for j in labels], linewidths=0)
        for j, center in enumerate(centers):
            ax.annotate(str((labels == j).sum()), center, ha="center", va="center", weight="bold")
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_color("#BBBBBB")
        ax.set_title(name, loc="left")
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
