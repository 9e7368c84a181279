"""Gaussian mixtures: time of an iteration and likelihoods beside scikit-learn's, and BIC.

    python benchmarks/mixtures.py time|quality|bic

`time` is wall time with two threads, in turns with scikit-learn, on an idle machine: an iteration,
`predict_proba` and `score_samples`, and the memory of a fit beyond its rows. `quality` and `bic`
are CPU seconds of one thread. `quality` needs the folder that `LLOYDFORMER_DATA` names, with sets.
They print tables and write results/mixtures_time.json and so on, in five, six and three minutes.
"""

import os
import subprocess
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

SIZES = ((100_000, 16, 10), (100_000, 32, 30), (1_000_000, 8, 20), (20_000, 128, 20))
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


def wall(function, *arguments):
    began = time.perf_counter()
    function(*arguments)
    return 1000 * (time.perf_counter() - began)


def measure_case(kind, rows, start, rounds, count=4):
    """Milliseconds of an iteration, of `predict_proba` and of `score_samples`, best of some rounds.

    An iteration is the difference of fits with 1 + count iterations and with 1, divided by count.
    """
    options = {**start, "covariance_type": kind, "tol": 0}
    best = {}
    for _ in range(rounds):
        for make in (GaussianMixture, lf.GaussianMixture):
            few, many = (make(max_iter=1 + more, **options) for more in (0, count))
            times = best.setdefault(make.__module__.split(".")[0], [np.inf] * 4)
            for place, (function, *given) in enumerate(
                ((few.fit, rows), (many.fit, rows), (many.predict_proba, rows),
                 (many.score_samples, rows))
            ):  # fmt: skip
                times[place] = min(times[place], wall(function, *given))
    return {
        name: {
            "iteration": (times[1] - times[0]) / count,
            "predict_proba": times[2],
            "score_samples": times[3],
        }
        for name, times in best.items()
    }


# Fits once in a process of its own; prints by how many MB the largest memory has grown.
MEMORY = """
import resource, sys, warnings
import numpy as np, torch
import lloydformer as lf
warnings.simplefilter("ignore")
n, d, k, kind, dtype = *map(int, sys.argv[1:4]), *sys.argv[4:6]
small = np.random.default_rng(0).normal(size=(5 * k + d, d)).astype(dtype)
lf.GaussianMixture(k, covariance_type=kind, max_iter=2, tol=0).fit(small)
rows = np.random.default_rng(0).normal(size=(n, d)).astype(dtype)
rows[:k] += np.arange(k)[:, None]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = lf.GaussianMixture(k, covariance_type=kind, max_iter=3, tol=0, means_init=rows[:k],
    weights_init=np.full(k, 1 / k), precisions_init=np.ones((k, d)) if kind == "diag"
    else np.stack([np.eye(d)] * k)).fit(rows)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def measure_memory(n, d, k, kind, dtype):
    command = [sys.executable, "-c", MEMORY, str(n), str(d), str(k), kind, dtype]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


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
                best = measure_case(kind, wide.astype(dtype), start, rounds)
                memory = measure_memory(n, d, k, kind, dtype)
                ratios = {
                    what: best["sklearn"][what] / best["lloydformer"][what]
                    for what in best["sklearn"]
                }
                case = {"n": n, "d": d, "k": k, "kind": kind, "dtype": dtype}
                result.append({**case, **best, "ratios": ratios, "megabytes": memory})
                words = ", ".join(
                    f"{what} {best['lloydformer'][what]:.1f} ms ({ratio:.1f})"
                    for what, ratio in ratios.items()
                )
                print(f"{n} x {d} k {k} {kind} {dtype}: {words}, {memory:.0f} MB", flush=True)
    for what in ("iteration", "predict_proba", "score_samples"):
        for dtype in ("float32", "float64"):
            found = [row["ratios"][what] for row in result if row["dtype"] == dtype]
            mean = np.exp(np.mean(np.log(found)))
            print(f"{what} {dtype}: geometric mean {mean:.1f}, least {min(found):.1f}")
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
    what = sys.argv[1]
    n_threads = 2 if what == "time" else 1
    torch.set_num_threads(n_threads)
    with threadpool_limits(n_threads):
        rows = {"time": measure_time, "quality": measure_quality, "bic": measure_bic}[what]()
    peers = {"scikit-learn": sklearn.__version__}
    print(save(f"mixtures_{what}", {**provenance(), "peers": peers, "rows": rows}))


if __name__ == "__main__":
    main()
