"""The loss of randomised k-medoids beside FasterPAM's, on ten data sets.

Columns are scaled to [0, 1], k = 10, squared Euclidean loss, at most 1,000 rows of each set. The
folder of the sets is the first argument, or LLOYDFORMER_DATA.
"""

import os
import statistics
import sys
import time
from pathlib import Path

import kmedoids
import numpy as np
from provenance import provenance, save
from sklearn.metrics import pairwise_distances

import lloydformer as lf

SETS = ("germancredit", "twonorm", "pc3", "ada-agnostic", "ringnorm", "pc4", "pendigits", "sylvine",
        "optdigits", "mfeat-karhunen")  # fmt: skip
K, SEEDS, MOST = 10, 5, 1000


def scaled(path: Path) -> np.ndarray:
    X = np.load(path)["X"].astype(np.float64)
    X = X[np.random.default_rng(0).permutation(len(X))[:MOST]]
    span = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(span > 0, span, 1)


def ours(X: np.ndarray, seed: int, **settings: object) -> float:
    return lf.KMedoids(K, random_state=seed, **settings).fit(X).inertia_


def one(X: np.ndarray) -> dict[str, float]:
    square = pairwise_distances(X, metric="sqeuclidean")
    seeds = range(SEEDS)
    began = time.perf_counter()
    best = [ours(X, s) for s in seeds]
    between = time.perf_counter()
    pam = [kmedoids.fasterpam(square, K, random_state=s).loss for s in seeds]
    return {
        "kmedoids_random": statistics.mean(ours(X, s, init="random", n_init=1) for s in seeds),
        "kmedoids": statistics.mean(best),
        "kmedoids_last": statistics.mean(ours(X, s, return_last=True) for s in seeds),
        "fasterpam": statistics.mean(pam),
        "kmeans": statistics.mean(lf.KMeans(K, random_state=s).fit(X).inertia_ for s in seeds),
        "kmedoids_s": (between - began) / SEEDS,
        "fasterpam_s": (time.perf_counter() - between) / SEEDS,
    }


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["LLOYDFORMER_DATA"])
    rows = {}
    for name in SETS:
        rows[name] = one(scaled(folder / f"{name}.npz"))
        print(name, {k: round(v, 3) for k, v in rows[name].items()})
    settings = {"k": K, "seeds": SEEDS, "rows at most": MOST, "loss": "sum of squared distances"}
    print(save("medoids", {"provenance": provenance("kmedoids", "scikit-learn"),
                           "settings": settings, "rows": rows}))  # fmt: skip


if __name__ == "__main__":
    main()
