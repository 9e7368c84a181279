"""How often the number of clusters is right: `lloydformer fit FILE` beside other ways to choose it.

    OMP_NUM_THREADS=1 python benchmarks/choose_k.py --real FOLDER

Problems are those of choose_k_problems.py: planted clusters, published sets, noise without
clusters, and real sets with classes from a folder of .npz files. Each is written as a CSV file, and
clustered by `lloydformer fit FILE` without any option, through its job in Python. The other ways
get the rows with standardised columns; they try 1 or 2 to 20 clusters. Writes results/choose_k.json
after each problem; what is there is not run again, and `--only default` runs one of the ways. The
study takes about 15 minutes on one core. `--keep-peers` keeps the other ways of an earlier record
of the same problems. `--family tune --only default --output FILE` runs the problems that thresholds
of the package are chosen on.
"""

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from choose_k_problems import FAMILIES, MOST_CLUSTERS, Problem, all_problems
from provenance import RESULTS, provenance
from sklearn.cluster import KMeans
from sklearn.metrics import (
    adjusted_rand_score,
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from lloydformer.app.jobs.fit.job import FitJob
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.data.storage.atomic_files import atomic_write_text

# References of the gap statistic, starts of each of its fits, and rows that it is computed of.
REFERENCES, GAP_STARTS, GAP_ROWS = 10, 2, 500
# Numbers of clusters from which x-means splits.
X_MEANS_FROM = (1, 2, 4, 8)
# Rows that scikit-learn's silhouette is computed of.
SILHOUETTE_ROWS = 2000

# Labels of the rows for each way to choose k, by its name.
Found = dict[str, np.ndarray]


def fit_default(problem: Problem, folder: Path) -> Found:
    """Run `lloydformer fit FILE` without any option that changes the clusters."""
    path = folder / "points.csv"
    header = ",".join(f"x{i + 1}" for i in range(problem.X.shape[1]))
    np.savetxt(path, problem.X, delimiter=",", header=header, comments="", fmt="%.9g")
    # The 999 of one real set is asked about otherwise; to the other ways it is a value, too.
    job = FitJob(FitSettings(data=str(path), sentinels="keep"))
    return {"lloydformer fit": job.fit(*job.read()).assignment.clusters.numpy()}


def _standardise(problem: Problem) -> np.ndarray:
    return StandardScaler().fit_transform(problem.X)


def _numbers(n_rows: int) -> range:
    return range(2, min(MOST_CLUSTERS, n_rows - 1) + 1)


def fit_scikit_learn(problem: Problem, folder: Path) -> Found:
    """Standardise, fit KMeans with ten starts for 2 to 20, and choose by three indices."""
    X = _standardise(problem)
    fits = [KMeans(k, n_init=10, random_state=0).fit(X).labels_ for k in _numbers(len(X))]
    fits = [labels for labels in fits if len(np.unique(labels)) > 1]
    rows = {"sample_size": min(len(X), SILHOUETTE_ROWS), "random_state": 0}
    indices: dict[str, Callable[[np.ndarray], float]] = {
        "silhouette": lambda labels: float(silhouette_score(X, labels, **rows)),
        "Calinski-Harabasz": lambda labels: float(calinski_harabasz_score(X, labels)),
        "Davies-Bouldin": lambda labels: -float(davies_bouldin_score(X, labels)),
    }
    return {f"scikit-learn, {name}": max(fits, key=index) for name, index in indices.items()}


def fit_mixture(problem: Problem, folder: Path) -> Found:
    """Standardise, fit normal mixtures with diagonal covariances, and choose by BIC from 1 on."""
    X = _standardise(problem)
    models = [
        GaussianMixture(k, covariance_type="diag", random_state=0).fit(X)
        for k in (1, *_numbers(len(X)))
    ]
    return {"scikit-learn, BIC of mixtures": min(models, key=lambda m: m.bic(X)).predict(X)}


def _spherical_bic(X: np.ndarray, labels: np.ndarray) -> float:
    """Return the BIC of normal clusters with one variance (Pelleg and Moore, 2000); high is good.

    With the variance of each coordinate, as their formula for d coordinates lacks the factor d.
    """
    (n, d), ids = X.shape, np.unique(labels)
    k = len(ids)
    if n <= k:
        return -np.inf
    sizes = np.array([np.count_nonzero(labels == j) for j in ids])
    within = sum(((X[labels == j] - X[labels == j].mean(axis=0)) ** 2).sum() for j in ids)
    variance = max(float(within) / (d * (n - k)), 1e-12)
    likelihood = (
        (sizes * np.log(sizes / n)).sum()
        - n * d / 2 * np.log(2 * np.pi * variance)
        - d * (n - k) / 2
    )
    return float(likelihood - (k - 1 + d * k + 1) / 2 * np.log(n))


def _split_from(X: np.ndarray, k: int) -> list[np.ndarray]:
    """Return labels after each round of splits, from k clusters on."""
    model = KMeans(k, n_init=10, random_state=0).fit(X)
    rounds = [model.labels_]
    while True:
        splits = dict[int, tuple[float, np.ndarray]]()
        for j in range(model.n_clusters):
            own = X[model.labels_ == j]
            if len(np.unique(own, axis=0)) < 3:
                continue
            halves = KMeans(2, n_init=10, random_state=0).fit(own)
            gain = _spherical_bic(own, halves.labels_) - _spherical_bic(own, np.zeros(len(own)))
            if gain > 0:
                splits[j] = gain, halves.cluster_centers_
        left = MOST_CLUSTERS - model.n_clusters
        chosen = sorted(splits, key=lambda j: -splits[j][0])[:left]
        if not chosen:
            return rounds
        kept = [c[None] for j, c in enumerate(model.cluster_centers_) if j not in chosen]
        centers = np.concatenate([*kept, *(splits[j][1] for j in chosen)])
        model = KMeans(len(centers), init=centers, n_init=1).fit(X)
        rounds.append(model.labels_)


def fit_x_means(problem: Problem, folder: Path) -> Found:
    """Standardise, and split clusters in two while that raises their BIC (Pelleg and Moore, 2000).

    After each round of splits k-means runs from all centers, and the best of the rounds by the BIC
    of all rows is kept. From 1, 2, 4 and 8 clusters on: one round group of many clusters is often
    not split in two, as halves of it are no better.
    """
    X = _standardise(problem)
    rounds = [labels for k in X_MEANS_FROM for labels in _split_from(X, k)]
    return {"x-means": max(rounds, key=lambda labels: _spherical_bic(X, labels))}


def fit_gap(problem: Problem, folder: Path) -> Found:
    """Standardise, and choose by the gap statistic (Tibshirani, Walther and Hastie, 2001).

    Of at most 500 rows. References are uniform in the box of the principal axes. "first" is the
    rule of the paper, the smallest k with gap(k) >= gap(k + 1) - s(k + 1); "largest" is the
    smallest k within a standard error of the largest gap. The k is then fitted to all rows.
    """
    all_rows, rng = _standardise(problem), np.random.default_rng(0)
    X = all_rows[rng.permutation(len(all_rows))[:GAP_ROWS]]
    turned = X @ np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2].T
    low, high = turned.min(axis=0), turned.max(axis=0)
    references = [rng.uniform(low, high, size=turned.shape) for _ in range(REFERENCES)]
    numbers = range(1, min(MOST_CLUSTERS, len(X) - 2) + 2)

    def fit(rows: np.ndarray, k: int) -> KMeans:
        return KMeans(k, n_init=GAP_STARTS, random_state=0).fit(rows)

    gaps, errors = dict[int, float](), dict[int, float]()
    for k in numbers:
        logs = np.log([max(fit(reference, k).inertia_, 1e-12) for reference in references])
        gaps[k] = float(logs.mean() - np.log(max(fit(X, k).inertia_, 1e-12)))
        errors[k] = float(logs.std() * np.sqrt(1 + 1 / REFERENCES))
    best = max(numbers[:-1], key=lambda k: gaps[k])
    chosen = {
        "first": [k for k in numbers[:-1] if gaps[k] >= gaps[k + 1] - errors[k + 1]],
        "largest": [k for k in numbers[:-1] if gaps[k] >= gaps[best] - errors[best]],
    }
    return {
        f"gap, {rule}": KMeans(min(ks, default=best), n_init=10, random_state=0)
        .fit(all_rows)
        .labels_
        for rule, ks in chosen.items()
    }


CONTENDERS: dict[str, Callable[[Problem, Path], Found]] = {
    "default": fit_default,
    "scikit-learn": fit_scikit_learn,
    "mixture": fit_mixture,
    "x-means": fit_x_means,
    "gap": fit_gap,
}


def measure(problem: Problem, names: list[str], folder: Path) -> dict[str, Any]:
    """Return [k, adjusted Rand index, seconds] for each way to choose k.

    Recipes of scikit-learn share their fits: each has the seconds of all of them.
    """
    found = dict[str, list[float]]()
    for name in names:
        began = time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # of peers: few different rows, no end
            labels_of = CONTENDERS[name](problem, folder)
        seconds = round(time.perf_counter() - began, 3)
        for way, labels in labels_of.items():
            index = round(float(adjusted_rand_score(problem.y, labels)), 4)
            found[way] = [len(np.unique(labels)), index, seconds]
    shape = {"n": len(problem.X), "d": problem.X.shape[1], "k": problem.k}
    return {"kind": problem.kind, **shape, "facts": problem.facts, "ran": names, "found": found}


def summarise(rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the numbers of each way: shares of the right k and of false clusters, mean indices."""
    ways = dict.fromkeys(way for row in rows.values() for way in row["found"])
    ways = dict.fromkeys(sorted(ways, key=lambda way: way != "lloydformer fit"))
    summary = dict[str, dict[str, float]]()
    for way in ways:
        values = dict[str, float]()
        for kind in dict.fromkeys(row["kind"] for row in rows.values()):
            own = [r for r in rows.values() if r["kind"] == kind and way in r["found"]]
            if not own:
                continue
            right = [row["found"][way][0] == row["k"] for row in own]
            values[f"{kind}, problems"] = len(own)
            values[f"{kind}, right k"] = float(np.mean(right))
            if kind == "noise":
                values["noise, false clusters"] = 1 - float(np.mean(right))
            values[f"{kind}, mean index"] = float(np.mean([row["found"][way][1] for row in own]))
            values[f"{kind}, mean seconds"] = float(np.mean([r["found"][way][2] for r in own]))
            several = [row for row in own if row["k"] > 1]
            if kind == "planted" and several:
                right = [row["found"][way][0] == row["k"] for row in several]
                index = [row["found"][way][1] for row in several]
                values["planted from 2, right k"] = float(np.mean(right))
                values["planted from 2, mean index"] = float(np.mean(index))
        summary[way] = {name: round(value, 4) for name, value in values.items()}
    return summary


def write_result(path: Path, result: dict[str, Any]) -> None:
    """Write the result, with a line for each problem."""
    result["summary"] = summarise(result["rows"])
    rows = ",\n".join(f"  {json.dumps(n)}: {json.dumps(r)}" for n, r in result["rows"].items())
    head = json.dumps({name: value for name, value in result.items() if name != "rows"}, indent=1)
    atomic_write_text(path, f'{head[:-2]},\n "rows": {{\n{rows}\n }}\n}}\n')


def leave_out_default(earlier: dict[str, Any]) -> dict[str, Any]:
    """Return an earlier result without `lloydformer fit`, and where its other ways come from."""
    for row in earlier["rows"].values():
        row["ran"] = [name for name in row["ran"] if name != "default"]
        row["found"].pop("lloydformer fit", None)
    return {"rows": earlier["rows"], "peers": earlier.get("peers", earlier["provenance"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--real", type=Path, help="folder of .npz files with X and y")
    parser.add_argument("--family", choices=list(FAMILIES), default="report")
    parser.add_argument("--planted", type=int, default=200)
    parser.add_argument("--noise", type=int, default=112)
    parser.add_argument("--only", default=",".join(CONTENDERS), help="ways to choose k")
    parser.add_argument("--keep-peers", action="store_true", help="run `lloydformer fit` alone")
    parser.add_argument("--output", type=Path, default=RESULTS / "choose_k.json")
    asked = parser.parse_args()
    result: dict[str, Any] = {"rows": {}}
    made = provenance("scikit-learn")
    earlier = json.loads(asked.output.read_text(encoding="utf-8")) if asked.output.exists() else {}
    if asked.keep_peers and earlier and earlier["provenance"]["commit"] != made["commit"]:
        result = leave_out_default(earlier) | {"provenance": made, "family": asked.family}
    elif earlier:
        result = earlier
        if result["provenance"]["commit"] != made["commit"] or result["family"] != asked.family:
            sys.exit(f"{asked.output}: is of another commit or family; remove it")
    else:
        result |= {"provenance": made, "family": asked.family}
    rows = result["rows"]
    with tempfile.TemporaryDirectory() as folder:
        for name, problem in all_problems(asked.family, asked.planted, asked.noise, asked.real):
            before = rows.get(name, {"ran": [], "found": {}})
            # KMeans of scikit-learn has no index for one cluster, so noise always has false ones.
            names = [
                each
                for each in asked.only.split(",")
                if each not in before["ran"] and (problem.kind, each) != ("noise", "scikit-learn")
            ]
            if not names:
                continue
            now = measure(problem, names, Path(folder))
            more = {"ran": before["ran"] + names, "found": before["found"] | now["found"]}
            rows[name] = now | more
            write_result(asked.output, result)
            found = {way: own[:2] for way, own in rows[name]["found"].items()}
            print(name, {x: rows[name][x] for x in ("n", "d", "k")}, found, flush=True)
    for way, values in result["summary"].items():
        print(way, values)


if __name__ == "__main__":
    main()
