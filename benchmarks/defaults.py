"""How good the defaults of soft and robust k-means are, on planted clusters, and two small studies.

    python benchmarks/defaults.py

Planted clusters: 2, 8 or 32 features, 3, 6 or 12 clusters, sizes and widths equal or not, five
draws of each (180 problems); the nearest means are six standard deviations of the wider cluster
apart. For
robust k-means every tenth row is an outlier, uniform in a box three times as wide as the data. The
number is the adjusted Rand index over the rows of clusters, beside KMeans from the same number of
starts. `starts` counts in how many of 20 trials trimmed k-means finds four planted centers among
outliers; `engines` in how many fits the native and the chunked engine end with other labels. Writes
results/defaults.json, which fills docs/soft-clustering.md, docs/outliers.md, docs/guarantees.md and
docs/reproducibility.md (`python benchmarks/tables.py`). Takes two minutes on one core.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from provenance import provenance, save
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

import lloydformer as lf

DRAWS, TRIALS, FITS = 5, 20, 12


def planted() -> Iterator[tuple[dict[str, Any], np.random.Generator, np.ndarray, np.ndarray]]:
    """Yield what a problem is, its generator, its points and their clusters."""
    for d, k, equal_sizes, equal_widths, draw in product(
        (2, 8, 32), (3, 6, 12), (True, False), (True, False), range(DRAWS)
    ):
        rng = np.random.default_rng([d, k, equal_sizes, equal_widths, draw])
        widths = np.ones(k) if equal_widths else rng.uniform(0.5, 1.5, size=k)
        middles = rng.normal(size=(k, d))
        middles *= 6 * widths.max() / pdist(middles).min()
        weights = np.ones(k) if equal_sizes else rng.uniform(0.2, 1.0, size=k)
        labels = rng.choice(k, size=80 * k, p=weights / weights.sum())
        labels[: 10 * k] = np.arange(10 * k) % k  # no cluster is nearly empty
        points = middles[labels] + widths[labels, None] * rng.normal(size=(len(labels), d))
        yield {"d": d, "k": k}, rng, points, labels


def compare_soft() -> list[float]:
    """Return the index of SoftKMeans less that of KMeans, for each problem."""
    found = []
    for about, _, points, labels in planted():
        soft, hard = (
            make(about["k"], n_init=3, random_state=0).fit(points).labels_
            for make in (lf.SoftKMeans, lf.KMeans)
        )
        found.append(adjusted_rand_score(labels, soft) - adjusted_rand_score(labels, hard))
    return found


def compare_robust() -> list[float]:
    """Return the index of RobustKMeans less that of KMeans, over rows that are no outliers."""
    found = []
    for about, rng, points, labels in planted():
        n = len(points) // 9
        low, high = points.min(axis=0), points.max(axis=0)
        outliers = rng.uniform(low - (high - low), high + (high - low), size=(n, points.shape[1]))
        rows = np.concatenate([points, outliers])
        robust, plain = (
            make(about["k"], n_init=3, random_state=0).fit(rows).labels_[: len(points)]
            for make in (lf.RobustKMeans, lf.KMeans)
        )
        found.append(adjusted_rand_score(labels, robust) - adjusted_rand_score(labels, plain))
    return found


def count_starts() -> dict[str, int]:
    """Return in how many trials trimmed k-means finds the planted centers, by start."""
    middles = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0], [8.0, 8.0]])
    starts = {
        'init="robust"': {"init": "robust"},
        'init="random", n_init=10': {"init": "random", "n_init": 10},
        'init="k-means++"': {"init": "k-means++"},
    }
    found = dict.fromkeys(starts, 0)
    for trial in range(TRIALS):
        rng = np.random.default_rng(trial)
        points = middles[rng.integers(4, size=900)] + rng.normal(size=(900, 2))
        rows = np.concatenate([points, rng.uniform(-60, 60, size=(100, 2))])
        for name, start in starts.items():
            model = lf.TrimmedKMeans(4, keep=0.8, random_state=trial, **start).fit(rows)
            away = np.linalg.norm(model.cluster_centers_ - middles[:, None], axis=2)
            found[name] += bool((away.min(axis=1) < 1).all())
    return found


def count_engines() -> dict[str, int]:
    """Return in how many fits both engines of the CPU end with other labels."""
    found = {}
    for name, dtype, spread in (
        ("noise, float32", np.float32, 0.0),
        ("noise, float64", np.float64, 0.0),
        ("clusters, float32", np.float32, 10.0),
    ):
        found[name] = 0
        for seed in range(FITS):
            rng = np.random.default_rng(seed)
            middles = spread * rng.normal(size=(8, 8))
            rows = (middles[rng.integers(8, size=30_000)] + rng.normal(size=(30_000, 8))).astype(
                dtype
            )
            one, other = (
                lf.KMeans(8, engine=engine, init=rows[:8], max_iter=300, tol=0).fit(rows).labels_
                for engine in ("native", "chunked")
            )
            found[name] += bool((one != other).any())
    return found


def summarise(differences: list[float]) -> dict[str, float]:
    return {
        "problems": len(differences),
        "mean": round(float(np.mean(differences)), 4),
        "least": round(min(differences), 4),
        "below by more than 0.02": sum(each < -0.02 for each in differences),
    }


def main() -> None:
    result = {
        "soft": summarise(compare_soft()),
        "robust": summarise(compare_robust()),
        "starts": count_starts(),
        "engines": count_engines(),
        "trials": TRIALS,
        "fits": FITS,
    }
    print(result)
    print(save("defaults", {**provenance("scikit-learn"), **result}))


if __name__ == "__main__":
    main()
