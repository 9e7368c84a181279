"""Draws docs/pictures/missing-values.png: `python docs/pictures/missing-values.py`.

How well k-means finds three clusters of docs/missing-values.md when values are missing.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf
from lloydformer.plots.palette import CLUSTERS


def score(share: float, seed: int) -> dict[str, float]:
    """Return the adjusted Rand index of each way, with this share of missing values."""
    rng = np.random.default_rng(seed)
    own = np.arange(600) % 3
    rows = 4 * rng.normal(size=(3, 8))[own] + 2 * rng.normal(size=(600, 8))
    rows[rng.random(rows.shape) < share] = np.nan
    there = ~np.isnan(rows).all(axis=1)
    rows, own = rows[there], own[there]
    mean = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    models = {
        'missing="ignore"': lf.KMeans(3, missing="ignore", n_init=3, random_state=0).fit(rows),
        'missing="impute"': lf.KMeans(3, missing="impute", n_init=3, random_state=0).fit(rows),
        "filled in with means": lf.KMeans(3, n_init=3, random_state=0).fit(mean),
    }
    return {name: adjusted_rand_score(own, model.labels_) for name, model in models.items()}


def draw(path: Path) -> None:
    shares = np.arange(0, 0.75, 0.1)
    found = [[score(share, seed) for seed in range(6)] for share in shares]
    figure = Figure(figsize=(6, 2.6), layout="constrained")
    ax = figure.subplots()
    for colour, name in zip(CLUSTERS, found[0][0], strict=False):
        means = [np.mean([one[name] for one in each]) for each in found]
        ax.plot(100 * shares, means, color=colour, marker="o", markersize=4)
        ax.annotate(name, (72, means[-1]), color=colour, va="center", fontsize=9)
    ax.set(xlabel="missing values, %", ylabel="adjusted Rand index", xlim=(0, 100), ylim=(0, 1))
    ax.set_xticks(range(0, 80, 10))
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
