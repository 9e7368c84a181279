"""Handwritten digits as medoids: clusters whose centers are real images.

The mean of many digits is blurred; a medoid is one of the images. `KMedoids` searches for them by
exchanges and relocations. The paper's sampler draws medoids with probability proportional to
exp(-squared distance), so the scale of the data matters to it: with the original grey levels the
medoids never move, and divided by a large number the draw is almost uniform.

    python digit_medoids.py [picture.png]

It prints:

    mean squared distance to the nearest center, 1797 digits, 10 clusters
      sampler, images / 1        1113  (mean of 3 starts)
      sampler, images / 4        1113  (mean of 3 starts)
      sampler, images / 8        1082  (mean of 3 starts)
      sampler, images / 16       1053  (mean of 3 starts)
      sampler, images / 32       1083  (mean of 3 starts)
      sampler, images / 128      1081  (mean of 3 starts)
      KMedoids                   863
      KMeans                     648
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import lloydformer as lf
from lloydformer.plots.palette import cluster_colour

digits = load_digits()
images = digits.data  # (1797, 64), grey levels from 0 to 16


def loss(model, divisor=1):
    return model.inertia_ * divisor**2 / len(images)  # in squared grey levels


def sampler(seed):
    return lf.KMedoids(10, method="paper", max_iter=50, random_state=seed)


kmeans = lf.KMeans(10, n_init=5, random_state=0).fit(images)
divisors = [1, 4, 8, 16, 32, 128]
losses = np.array([
    [loss(sampler(s).fit(images / d), d) for s in range(3)]
    for d in divisors
])  # fmt: skip
medoids = lf.KMedoids(10, random_state=0).fit(images)
print("mean squared distance to the nearest center, 1797 digits, 10 clusters")
for d, found in zip(divisors, losses, strict=True):
    print(f"  sampler, images / {d:<4} {found.mean():8.0f}  (mean of {len(found)} starts)")
print(f"  KMedoids               {loss(medoids):7.0f}")
print(f"  KMeans                 {loss(kmeans):7.0f}")

figure = plt.figure(figsize=(10, 6), layout="constrained")
above, below = figure.subfigures(2, 1, height_ratios=(2, 3))
cells = above.subplots(2, 10)
order = np.argsort(digits.target[medoids.medoid_indices_])
for j, column in zip(order, cells.T, strict=True):
    pair = images[medoids.medoid_indices_[j]], images[medoids.labels_ == j].mean(axis=0)
    for cell, image in zip(column, pair, strict=True):
        cell.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        cell.set(xticks=[], yticks=[])
cells[0, 0].set_ylabel("medoid")
cells[1, 0].set_ylabel("mean of\nits cluster")
ax = below.subplots()
ax.plot(divisors, losses, "o", c=cluster_colour(0), label=["the paper's sampler", None, None])
ax.axhline(loss(medoids), c=cluster_colour(2), label="KMedoids")
ax.axhline(loss(kmeans), c=cluster_colour(4), linestyle="--", label="KMeans")
ax.set_xscale("log", base=2)
ax.set_xticks(divisors, divisors)
ax.set(xlabel="grey levels divided by", ylabel="mean squared distance\n(grey levels squared)")
ax.legend(frameon=False, loc=(0.78, 0.12))
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "digit_medoids.png", dpi=120)
