"""Draws docs/pictures/mixtures.png: `python docs/pictures/mixtures.py`.

Three stretched clusters, as k-means, soft k-means and a Gaussian mixture see them.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.plots.palette import CLUSTERS


def problem() -> tuple[np.ndarray, np.ndarray]:
    """The rows of docs/mixtures.md, and the cluster of each."""
    rng = np.random.default_rng(0)
    own = np.arange(900) % 3
    return rng.normal(size=(900, 2)) * [5.0, 0.5] + own[:, None] * [4.0, 4.0], own


def draw(path: Path) -> None:
    rows, own = problem()
    models = {
        "k-means": lf.KMeans(3, random_state=0),
        "soft k-means": lf.SoftKMeans(3, random_state=0),
        "Gaussian mixture": lf.GaussianMixture(3, n_init=5, random_state=0),
    }
    figure = Figure(figsize=(9, 1.5), layout="constrained")
    for ax, (name, model) in zip(figure.subplots(1, 3), models.items(), strict=True):
        labels, centers = model.fit(rows).labels_, model.cluster_centers_
        # colours follow the height of the centers, so that the panels can be compared
        order = np.argsort(np.argsort(centers[:, 1]))
        ax.scatter(*rows.T, s=4, c=[CLUSTERS[order[j]] for j in labels], linewidths=0)
        ax.scatter(*centers.T, marker="x", s=60, c="black")
        if isinstance(model, lf.GaussianMixture):
            for j, center in enumerate(centers):
                values, vectors = np.linalg.eigh(model.covariances_[j])
                angle = np.degrees(np.arctan2(*vectors[::-1, 1]))
                width, height = 4 * np.sqrt(values[::-1])  # two standard deviations each way
                colour = CLUSTERS[order[j]]
                ax.add_patch(Ellipse(center, width, height, angle=angle, fill=False, ec=colour))
        ax.set(xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_color("#BBBBBB")
        ax.set_title(f"{name}: {adjusted_rand_score(own, labels):.2f}", loc="left")
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
