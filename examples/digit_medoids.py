"""Handwritten digits as medoids: clusters whose centers are real images.

The mean of many digits is a blur; a medoid is one of the images. K-medoids draws them with
probability exp(-squared distance), so the scale of the data decides how: at 16 grey levels the
medoids never move, and divided by much more they are drawn blindly. The loss is given in
grey levels throughout.

    python digit_medoids.py [picture.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import lloydformer as lf
from lloydformer.plots.palette import cluster_colour

images = load_digits().data  # (1797, 64), grey levels from 0 to 16
n = len(images)


def loss(model, divisor=1.0):
    """The mean squared distance to the nearest center, in squared grey levels."""
    return model.inertia_ * divisor**2 / n


kmeans = lf.KMeans(10, n_init=5, random_state=0).fit(images)
divisors = [1, 4, 8, 16, 32, 128]
losses = np.array([
    [loss(lf.KMedoids(10, max_iter=100, random_state=s).fit(images / d), d) for s in range(3)]
    for d in divisors
])  # fmt: skip
best = divisors[losses.mean(axis=1).argmin()]
medoids = lf.KMedoids(10, n_init=5, random_state=0).fit(images / best)

print(f"mean squared distance to the nearest center, {n} digits, 10 clusters")
for d, found in zip(divisors, losses, strict=True):
    print(f"  KMedoids, images / {d:<4} {found.mean():7.0f}  ({found.min():.0f} to {found.max():.0f})")
print(f"  KMedoids, images / {best:<4} {loss(medoids, best):7.0f}  (five starts, 300 draws each)")
print(f"  KMeans                 {loss(kmeans):7.0f}")
print(f"medoids are the rows {sorted(medoids.medoid_indices_.tolist())}")

figure = plt.figure(figsize=(11, 4), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(2, 3))
ax = left.subplots()
low, high = losses.min(axis=1), losses.max(axis=1)
ax.fill_between(divisors, low, high, color=cluster_colour(0), alpha=0.2, linewidth=0)
ax.plot(divisors, losses.mean(axis=1), marker="o", c=cluster_colour(0), label="KMedoids, one start")
ax.plot(best, loss(medoids, best), "D", c=cluster_colour(2), label="KMedoids, five starts")
ax.axhline(loss(kmeans), c=cluster_colour(4), linestyle="--", label="KMeans")
ax.set_xscale("log", base=2)
ax.set_xticks(divisors, divisors)
ax.set(xlabel="grey levels divided by", ylabel="mean squared distance", ylim=(0, None))
ax.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 0.12))
right.suptitle("Medoids (above) and the means of their clusters (below)")
order = np.argsort(load_digits().target[medoids.medoid_indices_])
for column, j in enumerate(order):
    mean = images[medoids.labels_ == j].mean(axis=0)
    for row, picture in enumerate([images[medoids.medoid_indices_[j]], mean]):
        cell = right.add_subplot(2, 10, row * 10 + column + 1)
        cell.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        cell.set(xticks=[], yticks=[])
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "digit_medoids.png", dpi=120)
