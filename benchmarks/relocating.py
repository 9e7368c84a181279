"""How good and how fast relocating k-means is, beside many starts and breathing k-means.

`python benchmarks/relocating.py runs|tasks|ablations|effort FOLDER` writes one part of
benchmarks/results/relocating.json; what is there already is not run again. FOLDER holds the .npz
sets; its columns are scaled to [0, 1]. `--sets`, `--clusters`, `--seeds` and `--most` (rows)
choose less or more. Contenders take turns, so that all see the same machine.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import RESULTS, provenance
from relocating_variants import VARIANTS
from sklearn.cluster import KMeans

import lloydformer as lf
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.learning.families import FAMILIES

OPENML = (
    "gina-agnostic",
    "musk",
    "mfeat-factors",
    "germancredit",
    "mfeat-fourier",
    "ionosphere",
    "mfeat-karhunen",
    "ada-agnostic",
    "optdigits",
    "sonar",
    "sylva-agnostic",
    "oil-spill",
    "ailerons",
    "pc4",
    "pc3",
)
Contender = Callable[[int, int], Any]


def make_breathing(k: int, seed: int) -> Any:
    """Breathing k-means; imported here, as pages are written without it."""
    from bkmeans import BKMeans

    return BKMeans(n_clusters=k, random_state=seed)


CONTENDERS: dict[str, Contender] = {
    "ours": lambda k, seed: lf.RelocatingKMeans(k, random_state=seed),
    "ours, patience 2": lambda k, seed: lf.RelocatingKMeans(k, patience=2, random_state=seed),
    "breathing": make_breathing,
    "k-means++ 10": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "k-means++ 1": lambda k, seed: KMeans(k, n_init=1, random_state=seed),
    "random 1": lambda k, seed: KMeans(k, init="random", n_init=1, random_state=seed),
    "Lloyd, same start": lambda k, seed: lf.KMeans(k, random_state=seed),
}
# It takes so long that only the first seeds are run.
OFTEN: dict[str, Contender] = {
    "k-means++ 50": lambda k, seed: KMeans(k, n_init=50, random_state=seed)
}
FEW, SLOW_SEEDS = 3, 2


def load_scaled_set(path: Path, most: int | None) -> np.ndarray:
    X = np.load(path)["X"].astype(np.float64)
    if most is not None:
        X = X[np.random.default_rng(0).permutation(len(X))[:most]]
    span = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(span > 0, span, 1)


def time_fit(model: Any, X: np.ndarray) -> list[float]:
    """The objective, seconds, and layers or iterations."""
    began = time.perf_counter()
    model.fit(X)
    return [float(model.inertia_), time.perf_counter() - began, int(model.n_iter_)]


def runs(X: np.ndarray, k: int, seeds: int) -> dict[str, list[list[float]]]:
    """Every contender from every seed, in turns."""
    found: dict[str, list[list[float]]] = {name: [] for name in CONTENDERS | OFTEN}
    for seed in range(seeds):
        for name, make in (CONTENDERS | (OFTEN if seed < SLOW_SEEDS else {})).items():
            found[name].append(time_fit(make(k, seed), X))
    return found


def ablations(X: np.ndarray, k: int, seeds: int) -> dict[str, list[list[float]]]:
    return {
        name: [time_fit(make(k, seed), X) for seed in range(min(seeds, FEW))]
        for name, make in VARIANTS.items()
    }


def effort(X: np.ndarray, k: int, seeds: int) -> dict[str, list[list[float]]]:
    """Objectives by the number of layers and by distances, in columns of k to every point."""
    found: dict[str, list[list[float]]] = {}
    for seed in range(min(seeds, FEW)):
        for patience in (1, 2, 5, 10):
            model = lf.RelocatingKMeans(k, patience=patience, random_state=seed).fit(X)
            columns = model.n_iter_ * (1 + min(5, k) / 2 / k)  # a few more centers in between
            found.setdefault(f"ours, patience {patience}", []).append([model.inertia_, columns])
        for n_init in (1, 3, 10, 30):
            heard: list[object] = []
            model = lf.KMeans(k, n_init=n_init, random_state=seed, callback=heard.append).fit(X)
            found.setdefault(f"k-means++ {n_init}", []).append([model.inertia_, len(heard)])
        history = (
            lf.RelocatingKMeans(k, random_state=seed, search_options={"n_iter_between": 2})
            .fit(X)
            .objective_history_
        )
        found.setdefault("history", []).append([float(v) for v in history])
    return found


def tasks(size: int) -> dict[str, dict[str, float]]:
    """The paper's tasks at depth 20: percent above the best of 20 greedy k-means++ starts."""
    rows = {}
    for family in FAMILIES:
        batch = lf.learning.Tasks().draw((family,), torch.tensor([7]), torch.tensor(0), size)
        problems = zip(batch.points[0], batch.centers[0], strict=True)
        excess = [
            _on_task(points.double().numpy(), start.double().numpy(), seed)
            for seed, (points, start) in enumerate(problems)
        ]
        rows[family] = {name: float(np.mean([each[name] for each in excess])) for name in excess[0]}
        print(family, {name: round(value, 2) for name, value in rows[family].items()}, flush=True)
    return rows


def _on_task(points: np.ndarray, start: np.ndarray, seed: int) -> dict[str, float]:
    k, depth = len(start), 20
    best = KMeans(k, n_init=20, random_state=seed).fit(points).inertia_
    how = {"max_iter": depth, "tol": 0.0, "random_state": seed}
    models = {
        "ours": lf.RelocatingKMeans(
            k, init=start, search_options={"n_moved": 3, "n_iter_between": 0}, **how
        ),
        "Lloyd": lf.KMeans(k, init=start, **how),
        "k-means++ 1": lf.KMeans(k, **how),
    }
    return {name: 100 * (model.fit(points).inertia_ / best - 1) for name, model in models.items()}


PARTS = {"runs": runs, "ablations": ablations, "effort": effort}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "tasks"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(OPENML), help='names, or "all"')
    parser.add_argument("--clusters", default="10,50")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--most", type=int, default=None, help="rows of a set")
    parser.add_argument("--output", type=Path, default=RESULTS / "relocating.json")
    asked = parser.parse_args()
    warnings.filterwarnings("ignore")  # of peers; sets with fewer points than clusters are skipped
    result = json.loads(asked.output.read_text()) if asked.output.exists() else {}
    result.setdefault("provenance", {})[asked.part] = provenance("scikit-learn", "bkmeans")
    if asked.part == "tasks":
        result["tasks"] = {"size": asked.seeds, "rows": tasks(asked.seeds)}
        atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")
        return
    there = sorted(path.stem for path in asked.folder.glob("*.npz"))
    names = there if asked.sets == "all" else asked.sets.split(",")
    rows = result.setdefault(asked.part, {})
    for name in names:
        X = load_scaled_set(asked.folder / f"{name}.npz", asked.most)
        for k in (int(word) for word in asked.clusters.split(",")):
            if f"{name}/{k}" in rows or len(X) <= 2 * k:
                continue
            rows[f"{name}/{k}"] = PARTS[asked.part](X, k, asked.seeds)
            atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")
            print(name, k, flush=True)


if __name__ == "__main__":
    main()
