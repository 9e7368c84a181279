"""Outliers: what 10 % of far points do to k-means, trimmed k-means and robust k-means.

The data are 450 points around four planted centers, and 50 points far from all of them. K-means
moves its centers towards the far points. Trimmed k-means leaves out the farthest points of each
cluster and lists them; robust k-means gives far points weight 0.

    python outliers.py [picture.png]

It prints:

    KMeans         farthest from its planted center: 1.23
    TrimmedKMeans  farthest from its planted center: 0.18
                   left out 74 points, 50 of the 50 far ones among them
    RobustKMeans   farthest from its planted center: 0.15
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

import lloydformer as lf
from lloydformer.plots.palette import INK, cluster_colour

rng = np.random.default_rng(0)
planted = np.array([[-4.0, -3.0], [4.0, -3.0], [-4.0, 3.0], [4.0, 3.0]])
inside = planted[rng.integers(4, size=450)] + 0.8 * rng.normal(size=(450, 2))
angles, radii = rng.uniform(0, 2 * np.pi, 50), rng.uniform(12, 20, 50)
far = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
X = np.concatenate([inside, far])

shared = {"n_clusters": 4, "n_init": 10, "random_state": 0}
models = [
    lf.KMeans(**shared),
    lf.TrimmedKMeans(keep=0.85, **shared),  # a cluster may have more than a tenth of far points
    lf.RobustKMeans(inverse_temperature=0.002, **shared),
]
figure, axes = plt.subplots(1, 3, figsize=(12, 4.6), layout="constrained", sharey=True)
for ax, model in zip(axes, models, strict=True):
    model.fit(X)
    away = cdist(planted, model.cluster_centers_)
    worst = away[linear_sum_assignment(away)].max()
    name = type(model).__name__
    print(f"{name:14} farthest from its planted center: {worst:.2f}")

    colours = [cluster_colour(j) for j in model.predict(X).tolist()]
    ax.scatter(*X.T, s=12, c=colours, alpha=0.5, linewidths=0)
    if hasattr(model, "outliers_"):
        left_out = X[model.outliers_]
        ax.scatter(*left_out.T, s=26, marker="x", c=INK, linewidths=0.8, label="outliers_")
        caught = np.isin(np.arange(450, 500), model.outliers_).sum()
        print(f"{'':14} left out {len(left_out)} points, {caught} of the 50 far ones among them")
    ax.scatter(*planted.T, s=130, facecolors="none", edgecolors="black", label="planted center")
    ax.scatter(*model.cluster_centers_.T, s=70, marker="^", c="black", edgecolors="white",
               label="center found")  # fmt: skip
    ax.set(title=f"{name}: off by {worst:.2f}", xlabel="feature 0", aspect="equal")
axes[0].set_ylabel("feature 1")
handles = axes[1].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "outliers.png", dpi=120)
