"""How good and how fast recombining k-means is: efforts, HG-means, planted and large problems.

`python benchmarks/recombining.py efforts|known|planted|large|learned FOLDER` writes one part of
benchmarks/results/recombining.json; what is there already is not run again, so that a part that was
stopped goes on. FOLDER holds the .npz sets; their columns are scaled to [0, 1]. Contenders take
turns, so that all see the same machine. Times are CPU seconds of the process, but for `large`.

`known` runs what gives the best known objectives: the effort "best" and, if the package is
installed, HG-means (`pip install hgmeans`, Gribel and Vidal 2019). To add a set of its authors,
put NAME.npz with an array X into FOLDER and pass --sets NAME.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from planted import PLANTED, centroid_index
from provenance import RESULTS, provenance
from relocating import load_scaled_set

import lloydformer as lf
from lloydformer.data.storage.atomic_files import atomic_write_text

# Sets on which the efforts were chosen.
TUNED = (
    "segment",
    "vehicle",
    "yeast",
    "wine-quality-red",
    "pc3",
    "mfeat-zernike",
    "wdbc",
    "synthetic-control",
    "wilt",
    "vowel",
    "page-blocks",
)
# Sets that were not looked at before.
OTHERS = ("phoneme", "kc1", "mfeat-fourier", "wine-quality-white", "pendigits")
Contender = Callable[[int, int], Any]


def relocating(**settings: Any) -> Contender:
    return lambda k, seed: lf.RelocatingKMeans(k, random_state=seed, **settings)


def make_breathing(k: int, seed: int) -> Any:
    """Breathing k-means; imported here, as pages are written without it."""
    from bkmeans import BKMeans

    return BKMeans(n_clusters=k, random_state=seed)


# Step by step: without the kernel for whole walks, as the default was before it had efforts.
EFFORTS: dict[str, Contender] = {
    "low, step by step": relocating(callback=lambda progress: None),
    "low": relocating(),
    "medium": relocating(effort="medium"),
    "high": relocating(effort="high"),
}
PEERS: dict[str, Contender] = {
    "patience 50": relocating(patience=50, max_iter=100_000),
    "breathing": make_breathing,
    "k-means++ 10": lambda k, seed: lf.KMeans(k, n_init=10, random_state=seed),
}
# Seeds of the peers.
FEW = 3
# Rows times clusters up to which HG-means takes seconds.
SHORT = 150_000


def time_fit(
    model: Any, X: np.ndarray, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """The objective, seconds, and layers."""
    began = clock()
    model.fit(X)
    return [float(model.inertia_), clock() - began, int(model.n_iter_)]


def efforts(X: np.ndarray, k: int, seeds: int) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {name: [] for name in EFFORTS | PEERS}
    lf.RelocatingKMeans(k, random_state=0).fit(X)  # what the first fit of a process loads
    for seed in range(seeds):
        for name, make in (EFFORTS | (PEERS if seed < FEW else {})).items():
            found[name].append(time_fit(make(k, seed), X))
    return found


def run_best_known(X: np.ndarray, k: int, seeds: int) -> dict[str, list[list[float]]]:
    """Long runs. HG-means: a population of 10 and 5,000 iterations, as its authors have it."""
    best = relocating(effort="best")
    found = {"best": [time_fit(best(k, seed), X) for seed in range(min(seeds, FEW))]}
    try:
        import hgmeans
    except ImportError:
        return found
    if len(X) * k > SHORT:
        return found
    began = time.process_time()
    labels = np.array(hgmeans.PyHGMeans().Go(X.tolist(), [0] * len(X), 10, 5000, 1, [k], 0)[0])
    took = time.process_time() - began
    members = [X[labels == j] for j in np.unique(labels)]
    objective = sum(((own - own.mean(axis=0)) ** 2).sum() for own in members)
    found["HG-means"] = [[float(objective), took, 5000]]
    return found


def run_planted(name: str, seeds: int) -> dict[str, list[list[float]]]:
    """The centroid index, the objective and the seconds of each run."""
    X, middles = PLANTED[name]()
    found: dict[str, list[list[float]]] = {}
    for effort, runs in (("low", min(seeds, 20)), ("medium", min(seeds, 20)), ("high", seeds)):
        for seed in range(runs):
            model = lf.RelocatingKMeans(len(middles), effort=effort, random_state=seed)
            objective, seconds, _ = time_fit(model, X)
            index = centroid_index(model.cluster_centers_, middles)
            found.setdefault(effort, []).append([index, objective, seconds])
    return found


LARGE = {"1M x 16, k = 100": (1_000_000, 16, 100), "100k x 64, k = 1000": (100_000, 64, 1000)}
RESTARTS = 50


def mixture(n: int, d: int, k: int) -> np.ndarray:
    """Middles uniform in the unit cube, noise 0.15, float32."""
    rng = np.random.default_rng(0)
    middles = rng.random((k, d), dtype=np.float32)
    noise = rng.standard_normal((n, d), dtype=np.float32)
    return middles[rng.integers(k, size=n)] + np.float32(0.15) * noise


def large(size: tuple[int, int, int], rows: dict[str, Any]) -> Iterator[None]:
    """Restarts of k-means++, and "medium", one run after the other; yields after each."""
    X, k = mixture(*size), size[2]
    medium, restarts = rows.setdefault("medium", []), rows.setdefault("k-means++", [])
    while len(medium) < FEW:
        model = lf.RelocatingKMeans(k, effort="medium", random_state=len(medium))
        medium.append(time_fit(model, X, time.perf_counter))
        yield
    while len(restarts) < RESTARTS:
        model = lf.KMeans(k, n_init=1, random_state=len(restarts))
        restarts.append(time_fit(model, X, time.perf_counter))
        yield


def run_learned(X: np.ndarray, k: int, seeds: int) -> dict[str, list[list[float]]]:
    """Learned steps before relocation: from the same k-means++ rows, and from random rows."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(min(seeds, FEW)):
        for init in ("k-means++", "random"):
            start = lf.KMeans(k, init=init, n_init=1, max_iter=1, tol=0, random_state=seed)
            begin = start.fit(X).cluster_centers_
            plain = lf.RelocatingKMeans(k, init=begin, random_state=seed)
            found.setdefault(f"{init}, Lloyd's steps", []).append(time_fit(plain, X))
            clock = time.process_time()
            steps = lf.LearnedKMeans(k, init=begin, n_init=1, max_iter=10, random_state=seed)
            steps.fit(X)
            spent = time.process_time() - clock
            after = lf.RelocatingKMeans(k, init=steps.cluster_centers_, random_state=seed)
            objective, seconds, layers = time_fit(after, X)
            row = [objective, seconds + spent, layers]
            found.setdefault(f"{init}, learned steps first", []).append(row)
    return found


PARTS = {"efforts": efforts, "known": run_best_known, "learned": run_learned}


def real(asked: argparse.Namespace) -> Iterator[tuple[str, Callable[[], Any]]]:
    """A part over the sets of a folder."""
    for name in asked.sets.split(","):
        X = load_scaled_set(asked.folder / f"{name}.npz", asked.most)
        for k in (int(word) for word in asked.clusters.split(",")):
            yield f"{name}/{k}", lambda X=X, k=k: PARTS[asked.part](X, k, asked.seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("part", choices=[*PARTS, "planted", "large"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(TUNED + OTHERS))
    parser.add_argument("--clusters", default="10,50")
    parser.add_argument("--problems", default=";".join(PLANTED), help="planted ones, A1;A2")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=None, help="rows of a set")
    parser.add_argument("--output", type=Path, default=RESULTS / "recombining.json")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")  # of sets with few different points

    def load_stored() -> dict[str, Any]:
        return json.loads(asked.output.read_text()) if asked.output.exists() else {}

    def store(key: str, value: Any) -> None:
        """Write one row; other parts may be written at the same time."""
        result = load_stored()
        result.setdefault("provenance", {})[asked.part] = provenance("scikit-learn", "bkmeans")
        result.setdefault(asked.part, {})[key] = value
        atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")
        print(asked.part, key, flush=True)

    if asked.part == "large":
        for name, size in LARGE.items():
            rows = load_stored().get("large", {}).get(name, {})
            for _ in large(size, rows):
                store(name, rows)
        return
    todo = (
        (
            (name, lambda name=name: run_planted(name, asked.seeds))
            for name in asked.problems.split(";")
        )
        if asked.part == "planted"
        else real(asked)
    )
    for key, work in todo:
        if key not in load_stored().get(asked.part, {}):
            store(key, work())


if __name__ == "__main__":
    main()
