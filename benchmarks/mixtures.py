"""Gaussian mixtures: time of an iteration and likelihoods beside scikit-learn's, and BIC.

    python benchmarks/mixtures.py time|quality|bic

CPU seconds of one thread, in turns with scikit-learn. `quality` needs the folder of data sets that
`LLOYDFORMER_DATA` names. Prints tables and writes results/mixtures_time.json and so on. They take
three, six and three minutes on one core.
"""

import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn
import torch
from provenance import provenance, save
from sklearn.metrics import silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import lloydformer as lf

SIZES = ((100_000, 16, 10), (100_000, 32, 30), (300_000, 8, 20), (20_000, 128, 20))
PLANTED = {  # components, columns, spread of the means, range of the axes, evenness of the weights
    "separated": (10, 8, 4.0, (0.8, 1.2), 9.0),
    "overlapping": (10, 8, 1.2, (0.5, 1.5), 9.0),
    "unequal": (10, 4, 3.0, (0.1, 2.0), 0.7),
    "nested": (8, 6, 0.6, (0.2, 3.0), 5.0),
    "wide": (15, 24, 1.0, (0.6, 1.4), 5.0),
    "many": (30, 3, 5.0, (0.3, 1.0), 5.0),
}
REAL = ("pendigits", "segment", "cpu-act", "sylvine", "wine-quality-white", "phoneme")
ROWS = 4000


def draw(rng, n, k, d, spread, sizes, alpha):
    """Rows of k stretched components with random axes, and the component of each row."""
    own, rows = rng.choice(k, n, p=rng.dirichlet(np.full(k, alpha))), np.empty((n, d))
    for j, mean in enumerate(rng.normal(0, spread, (k, d))):
        axes = np.linalg.qr(rng.normal(size=(d, d)))[0] * rng.uniform(*sizes, d)
        rows[own == j] = mean + rng.normal(size=((own == j).sum(), d)) @ axes.T
    return rows, own


def problem(name):
    """Rows that are fitted, rows that are held out, and k; columns have variance 1."""
    rng = np.random.default_rng(0)
    if name in PLANTED:
        k, d, *how = PLANTED[name]
        rows = draw(rng, 2 * ROWS, k, d, *how)[0]
    else:
        rows, k = (
            np.load(Path(os.environ["LLOYDFORMER_DATA"]) / f"{name}.npz")["X"].astype(float),
            10,
        )
    rows = rows[:, rows.std(axis=0) > 0]
    rows = ((rows - rows.mean(axis=0)) / rows.std(axis=0))[rng.permutation(len(rows))]
    cut = min(ROWS, len(rows) * 3 // 4)
    return rows[:cut], rows[cut : 2 * cut], k


def timed(model, rows):
    began = time.process_time()
    model.fit(rows)
    return time.process_time() - began


def iteration(kind, rows, start, rounds, count=4):
    """Milliseconds of an iteration: of fits with 1 and 1 + count iterations, the difference.

    Each of the two is the best of several rounds.
    """
    options = {**start, "covariance_type": kind, "tol": 0}
    best = {make: [np.inf, np.inf] for make in (GaussianMixture, lf.GaussianMixture)}
    for _ in range(rounds):
        for make, times in best.items():
            for place, more in enumerate((0, count)):
                times[place] = min(times[place], timed(make(max_iter=1 + more, **options), rows))
    return {
        make.__module__.split(".")[0]: 1000 * (many - few) / count
        for make, (few, many) in best.items()
    }


def measure_time(rounds=3):
    result = []
    for n, d, k in SIZES:
        rng = np.random.default_rng(1)
        wide = draw(rng, n, k, d, 2 * np.sqrt(8 / d), (0.5, 1.5), 5.0)[0]
        for kind in ("diag", "full"):
            one = np.full((k, d), 0.3) if kind == "diag" else np.stack([0.3 * np.eye(d)] * k)
            start = {
                "n_components": k,
                "weights_init": np.full(k, 1 / k),
                "means_init": wide[:k],
                "precisions_init": one,
            }
            for dtype in ("float32", "float64"):
                rows = wide.astype(dtype)
                best = iteration(kind, rows, start, rounds)
                ratio = best["sklearn"] / best["lloydformer"]
                result.append({"n": n, "d": d, "k": k, "kind": kind, "dtype": dtype, **best})
                print(
                    f"{n} x {d} k {k} {kind} {dtype}: scikit-learn {best['sklearn']:.1f} ms, "
                    f"lloydformer {best['lloydformer']:.1f} ms, ratio {ratio:.1f}",
                    flush=True,
                )
    return result


def measure_quality(seeds=2):
    ways = {
        "scikit-learn, 10 starts": lambda **o: GaussianMixture(n_init=10, **o),
        "one start": lambda **o: lf.GaussianMixture(**o),
        "effort medium": lambda **o: lf.GaussianMixture(effort="medium", **o),
        "effort high": lambda **o: lf.GaussianMixture(effort="high", **o),
    }
    result = []
    for kind in ("full", "diag"):
        for name in (*PLANTED, *REAL):
            rows, held_out, k = problem(name)
            for way, make in ways.items():
                runs = []
                for seed in range(seeds):
                    model = make(
                        n_components=k,
                        covariance_type=kind,
                        reg_covar=1e-3,
                        tol=1e-4,
                        max_iter=1000,
                        random_state=seed,
                    )
                    seconds = timed(model, rows)
                    runs.append((model.score(rows), model.score(held_out), seconds))
                means = dict(zip(("fitted", "held_out", "seconds"), np.mean(runs, 0), strict=True))
                result.append({"set": name, "kind": kind, "k": k, "way": way, **means})
                words = ", ".join(f"{value:.3f}" for value in means.values())
                print(f"{kind} {name}: {way}: {words}", flush=True)
    return result


def measure_bic(count=100):
    result = []
    for number in range(count):
        rng = np.random.default_rng(number)
        kind = ("full", "tied", "diag", "spherical")[number % 4]
        k, d = int(rng.integers(2, 7)), int(rng.integers(2, 6))
        axes = np.linalg.qr(rng.normal(size=(k, d, d)))[0] * rng.uniform(0.5, 2, (k, 1, d))
        if kind == "tied":
            axes[:] = axes[0]
        elif kind == "diag":
            axes = np.stack([np.diag(scale) for scale in rng.uniform(0.5, 2, (k, d))])
        elif kind == "spherical":
            axes = np.stack([scale * np.eye(d) for scale in rng.uniform(0.5, 2, k)])
        own = np.arange(150 * k) % k
        noise = np.einsum("nd,ned->ne", rng.normal(size=(150 * k, d)), axes[own])
        rows = rng.normal(0, 5, (k, d))[own] + noise
        tried = range(1, 9)
        options = {"covariance_type": kind, "effort": "medium", "random_state": 0}
        bic = {m: lf.GaussianMixture(m, **options).fit(rows).bic(rows) for m in tried}
        labels = {m: lf.KMeans(m, random_state=0).fit(rows).labels_ for m in tried if m > 1}
        silhouettes = {m: silhouette_score(rows, found) for m, found in labels.items()}
        by_bic, by_silhouette = min(bic, key=bic.get), max(silhouettes, key=silhouettes.get)
        result.append({"kind": kind, "k": k, "d": d, "bic": by_bic, "silhouette": by_silhouette})
    for name in ("bic", "silhouette"):
        print(f"{name}: {sum(r[name] == r['k'] for r in result)} of {count} right", flush=True)
    return result


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    what = sys.argv[1]
    with threadpool_limits(1):
        rows = {"time": measure_time, "quality": measure_quality, "bic": measure_bic}[what]()
    peers = {"scikit-learn": sklearn.__version__}
    print(save(f"mixtures_{what}", {**provenance(), "peers": peers, "rows": rows}))


if __name__ == "__main__":
    main()
