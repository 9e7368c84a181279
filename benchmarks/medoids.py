"""The loss and the time of k-medoids, beside FasterPAM and other ways, on 21 data sets.

`python benchmarks/medoids.py runs|large|memory FOLDER` writes one part of
benchmarks/results/medoids.json; what is there already is not run again. FOLDER holds the .npz sets;
columns are scaled to [0, 1], in float32. One thread each; seconds are the CPU time of the process,
so that other work on the machine disturbs less. FasterPAM's include the matrix of distances.
`--sets`, `--metrics` and `--seeds` choose less. Sets that were used to choose the settings of the
search: `TUNED`. BanditPAM is run if `banditpam` is installed.
"""

import argparse
import ctypes
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import kmedoids  # noqa: E402
import numpy as np  # noqa: E402
from provenance import RESULTS, provenance  # noqa: E402
from sklearn.metrics.pairwise import cosine_distances, euclidean_distances, manhattan_distances  # noqa: E402

import lloydformer as lf  # noqa: E402
from lloydformer.data.storage.atomic_files import atomic_write_text  # noqa: E402

try:
    import banditpam
except ImportError:
    banditpam = None

# The sets of tab:med-res.
PAPER = (
    "germancredit",
    "twonorm",
    "pc3",
    "ada-agnostic",
    "ringnorm",
    "pc4",
    "pendigits",
    "sylvine",
    "optdigits",
    "mfeat-karhunen",
)
OTHERS = (
    "yeast",
    "segment",
    "kc1",
    "mfeat-fourier",
    "mfeat-zernike",
    "page-blocks",
    "wine-quality-white",
    "phoneme",
    "cpu-act",
    "wilt",
    "vehicle",
)
# Sets that the settings of the search were chosen on.
TUNED = (
    "germancredit",
    "pc4",
    "pc3",
    "mfeat-karhunen",
    "sylvine",
    "ringnorm",
    "pendigits",
    "ada-agnostic",
    "optdigits",
    "vehicle",
    "yeast",
)
METRICS = ("sqeuclidean", "manhattan", "cosine", "euclidean")
CLUSTERS = (10, 50)
# Seeds that are run before the next set, so that a study that is stopped has all sets.
TOGETHER = 3
MATRICES = {
    "sqeuclidean": lambda X: euclidean_distances(X, squared=True),
    "euclidean": euclidean_distances,
    "manhattan": lambda X: manhattan_distances(X).astype(np.float32),
    "cosine": cosine_distances,
}


def load_scaled_set(path: Path) -> np.ndarray:
    X = np.load(path)["X"].astype(np.float64)
    span = np.ptp(X, axis=0)
    return ((X - X.min(axis=0)) / np.where(span > 0, span, 1)).astype(np.float32)


def loss(X: np.ndarray, medoids: np.ndarray, metric: str) -> float:
    """In float64, by differences, a part of the rows at a time."""
    if metric == "cosine":
        X = X / np.maximum(np.linalg.norm(X.astype(float), axis=1, keepdims=True), 1e-300)
    centers, total = X[np.asarray(medoids, int)].astype(float), 0.0
    for part in np.array_split(X, max(1, len(X) * len(centers) * X.shape[1] // 10**7)):
        apart = part.astype(float)[:, None] - centers
        if metric == "manhattan":
            total += np.abs(apart).sum(axis=2).min(axis=1).sum()
            continue
        squares = np.einsum("ikd,ikd->ik", apart, apart).min(axis=1)
        total += (np.sqrt(squares) if metric == "euclidean" else squares).sum()
    return float(total / 2 if metric == "cosine" else total)


def ours(X: np.ndarray, k: int, metric: str, seed: int, **how: Any) -> np.ndarray:
    model = lf.KMedoids(k, metric=metric, random_state=seed, engine="native", **how)
    return np.asarray(model.fit(X).medoid_indices_)


def bandit(X: np.ndarray, k: int, metric: str, seed: int) -> np.ndarray:
    """BanditPAM with its settings as they are; "L2" is the Euclidean distance."""
    model = banditpam.KMedoids(n_medoids=k, algorithm="BanditPAM")
    model.seed = seed
    model.fit(X, "L2")
    return np.asarray(model.medoids)


def clara(X: np.ndarray, k: int, metric: str, seed: int) -> np.ndarray:
    """FasterPAM on five samples of 80 + 4 k rows; the medoids with the lowest loss on all rows."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(5):
        rows = rng.choice(len(X), min(len(X), 80 + 4 * k), replace=False)
        distances = MATRICES[metric](X[rows]).astype(np.float32)
        found.append(rows[kmedoids.fasterpam(distances, k, random_state=seed, n_cpu=1).medoids])
    return min(found, key=lambda medoids: loss(X, medoids, metric))


Run = Callable[[np.ndarray, int, str, int], np.ndarray]
OURS: dict[str, Run] = {
    "ours": lambda X, k, metric, seed: ours(X, k, metric, seed),
    "ours, quick": lambda X, k, metric, seed: ours(X, k, metric, seed, effort="low"),
}
# For squared Euclidean distances and the first seed.
FURTHER: dict[str, Run] = {
    "the paper's sampler": lambda X, k, metric, seed: ours(X, k, metric, seed, method="paper"),
    "ours, thorough": lambda X, k, metric, seed: ours(X, k, metric, seed, effort="high"),
    "CLARA": clara,
}


def contenders(metric: str, k: int, seed: int) -> dict[str, Run]:
    if metric == "sqeuclidean" and seed == 0:
        return OURS | FURTHER
    if metric == "euclidean" and seed == 0 and k == CLUSTERS[0] and banditpam is not None:
        return OURS | {"BanditPAM": bandit}  # up to a minute; far longer for more clusters
    return OURS


def time_run(run: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    began = time.process_time()
    found = run()
    return found, time.process_time() - began


def matrix(X: np.ndarray, metric: str) -> tuple[np.ndarray, float]:
    """The distances, and the seconds that they took: the lower of two for small sets."""
    times = []
    for _ in range(2 if len(X) < 3000 else 1):
        distances, took = time_run(lambda: MATRICES[metric](X))
        times.append(took)
    return distances, min(times)


def one_set(X: np.ndarray, metric: str, seeds: range, rows: dict[str, Any], key: str) -> None:
    """Every contender from these seeds, in turns; appends [loss, seconds] of each."""
    ours(X[:100], 3, metric, 0)  # imports
    distances, built = matrix(X, metric)
    for k in CLUSTERS:
        found = rows.setdefault(f"{key}/{k}", {})
        for seed in seeds:
            if len(found.get("FasterPAM", ())) > seed:
                continue
            for name, run in contenders(metric, k, seed).items():
                medoids, took = time_run(lambda run=run, seed=seed, k=k: run(X, k, metric, seed))
                found.setdefault(name, []).append([loss(X, medoids, metric), took])
            theirs = {"FasterPAM": kmedoids.fasterpam, "alternating": kmedoids.alternating}
            for name, solver in theirs.items():
                if name != "FasterPAM" and (seed > 0 or metric != "sqeuclidean"):
                    continue
                one = {"n_cpu": 1} if name == "FasterPAM" else {}
                medoids, took = time_run(
                    lambda solver=solver, one=one, seed=seed, k=k: (
                        solver(distances, k, random_state=seed, **one).medoids
                    )
                )
                found.setdefault(name, []).append([loss(X, medoids, metric), took + built])


def runs(folder: Path, asked: argparse.Namespace, result: dict[str, Any]) -> None:
    rows = result.setdefault("runs", {})
    for start in range(0, asked.seeds, TOGETHER):
        seeds = range(start, min(asked.seeds, start + TOGETHER))
        for metric in asked.metrics.split(","):
            for name in asked.sets.split(","):
                key = f"{name}/{metric}"
                done = [len(rows.get(f"{key}/{k}", {}).get("FasterPAM", ())) for k in CLUSTERS]
                if min(done) >= seeds.stop:
                    continue
                X = load_scaled_set(folder / f"{name}.npz")
                X = X[np.any(X != 0, axis=1)] if metric == "cosine" else X  # these have a direction
                one_set(X, metric, seeds, rows, key)
                atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")
                print(key, seeds, flush=True)


def large_points(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    middles = rng.uniform(size=(64, 16))[rng.integers(64, size=n)]
    return (middles + 0.15 * rng.normal(size=(n, 16))).astype(np.float32)


def status(name: str) -> int:
    """Bytes of the process: "VmRSS" now, or "VmHWM" at most since `forget_peak`. Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget_peak() -> int:
    """Give free memory back, reset the peak, and return the bytes that are in use."""
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def large(folder: Path, asked: argparse.Namespace, result: dict[str, Any]) -> None:
    """1M x 16, k 20: ours, and FasterPAM on 10,000 rows; wall time on the threads allowed."""
    rows = result.setdefault("large", {})
    for n in (10_000, 100_000, 1_000_000):
        X = large_points(n)
        ours(X[:1000], 3, "sqeuclidean", 0)
        found: dict[str, Any] = {}
        for effort in ("low", "medium"):
            began, cpu = time.perf_counter(), time.process_time()
            medoids = ours(X, 20, "sqeuclidean", 0, effort=effort)
            took = [time.perf_counter() - began, time.process_time() - cpu]
            found[f"ours, {effort}"] = [medoids, *took]
        for run in found.values():
            run[0] = loss(X, run[0], "sqeuclidean")
        sample = np.random.default_rng(0).choice(n, 10_000, replace=False)
        began, cpu = time.perf_counter(), time.process_time()
        distances = euclidean_distances(X[sample], squared=True)
        theirs = sample[kmedoids.fasterpam(distances, 20, random_state=0, n_cpu=1).medoids]
        took = [time.perf_counter() - began, time.process_time() - cpu]
        found["FasterPAM, 10,000 rows"] = [loss(X, theirs, "sqeuclidean"), *took]
        rows[str(n)] = found
        atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")
        print(n, found, flush=True)


def memory(folder: Path, asked: argparse.Namespace, result: dict[str, Any]) -> None:
    """Bytes a row beside the data at the peak of a fit of 1M x 16, k 20."""
    X = large_points(1_000_000)
    ours(X[:1000], 3, "sqeuclidean", 0)
    for effort in ("low", "medium"):
        before = forget_peak()
        ours(X, 20, "sqeuclidean", 0, effort=effort)
        found = (status("VmHWM") - before) / len(X)
        result.setdefault("memory", {})[f"ours, {effort}"] = found
        atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")
        print(effort, found, flush=True)


PARTS = {"runs": runs, "large": large, "memory": memory}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=list(PARTS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(PAPER + OTHERS))
    parser.add_argument("--metrics", default=",".join(METRICS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=RESULTS / "medoids.json")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")
    result = json.loads(asked.output.read_text()) if asked.output.exists() else {}
    result.setdefault("provenance", {})[asked.part] = provenance(
        "kmedoids", "scikit-learn", *(["banditpam"] if banditpam else [])
    )
    PARTS[asked.part](asked.folder, asked, result)


if __name__ == "__main__":
    sys.exit(main())
