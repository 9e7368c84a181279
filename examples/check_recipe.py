"""A recipe of your own, checked against a plain algorithm of your own.

Damped k-means moves each center only half of the way to the mean of its points. The recipe is
Lloyd's with one part replaced: the decoder's cross-attention adds half of the mean. That is not
enough: `decoder_self` still takes the whole old center away, so that centers shrink towards the
origin of the data. `lf.check` finds it and shows a problem of one point. With half of the old
center kept, the recipe agrees with the algorithm.

    python check_recipe.py [picture.png]

It prints:

    mistaken: differs, first in layer 0 of a clustered problem, center 0
        point (1), center (0): the algorithm moves it to 0.5, the circuit to 1.0
    repaired: agrees on 48 problems, centers to 1e-9 of the spread
"""

import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import lloydformer as lf
from lloydformer.circuits.projections import on
from lloydformer.circuits.subspaces import POSITION
from lloydformer.plots.palette import INK, cluster_colour


def damped_kmeans(points, centers):
    """One step of the plain algorithm."""
    labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    own = [points[labels == j] for j in range(len(centers))]
    means = [(x if len(x) else points).mean(axis=0) for x in own]  # of all points, if it has none
    return (centers + np.array(means)) / 2


lloyd, half = lf.recipes.lloyd(), 0.5 * on(POSITION)
mistaken = replace(lloyd, name="damped", decoder_cross=replace(lloyd.decoder_cross, value=half))
repaired = replace(mistaken, decoder_self=replace(lloyd.decoder_self, value=-half))

result = lf.check(mistaken, damped_kmeans)
first, small = result.difference, result.smallest
family = first.trial.problem.family
print(
    f"mistaken: differs, first in layer {first.layer} of a {family} problem, center {first.center}"
)
(point,), (center,) = small.trial.problem.points, small.trial.problem.centers
print(f"    point ({point[0]:g}), center ({center[0]:g}): the algorithm moves it to "
      f"{small.expected[0]}, the circuit to {small.found[0]}")  # fmt: skip
result = lf.check(repaired, damped_kmeans)
assert result.deviation <= 1e-9
print(f"repaired: agrees on {len(result.outcomes)} problems, centers to 1e-9 of the spread")

rng = np.random.default_rng(0)
middles = np.array([[4.0, 3.0], [8.0, 3.0], [6.0, 7.0]])
points = middles[np.arange(120) % 3] + 0.7 * rng.normal(size=(120, 2))
start = np.array([[3.0, 6.5], [9.0, 6.0], [6.0, 1.0]])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.6), layout="constrained", sharey=True)
for ax, recipe, title in zip(axes, (mistaken, repaired), ("mistaken", "repaired"), strict=True):
    trace = lf.Circuit(recipe, n_features=2, n_clusters=3)(points, start, n_layers=8)
    plain = [start]
    for _ in range(8):
        plain.append(damped_kmeans(points, plain[-1]))
    ax.scatter(*points.T, s=10, c=INK, alpha=0.25, linewidths=0)
    for j, colour in enumerate(map(cluster_colour, range(3))):
        ax.plot(
            *trace.centers[:, j].T, "o-", color=colour, markersize=6, label="circuit" * (j == 0)
        )
        ax.plot(*np.array(plain)[:, j].T, "x--", color=INK, markersize=6, linewidth=0.8,
                label="plain algorithm" * (j == 0))  # fmt: skip
    ax.set(title=f"{title} recipe, 8 layers", xlabel="feature 0", aspect="equal")
axes[0].set_ylabel("feature 1")
handles = axes[0].get_legend_handles_labels()
figure.legend(*handles, loc="outside lower center", ncols=2, frameon=False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "check_recipe.png", dpi=120)
