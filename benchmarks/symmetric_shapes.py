"""Other n, d and k than any task had: learned and Lloyd's algorithm from the same starts."""

from collections.abc import Callable
from typing import Any

import numpy as np

import lloydformer as lf

KINDS = ("normal", "uniform", "heavy", "blobs")
# Products n d k of all trials of a shape, at most; but at least two trials.
WORK = 1e8

# How many numbers k d the centers have at most, by the number of points.
MOST = {100: 10**5, 1000: 10**5, 10_000: 10**5, 100_000: 4000, 1_000_000: 300}


def draw_points(kind: str, n: int, k: int, d: int, rng: np.random.Generator) -> np.ndarray:
    noise = rng.standard_normal((n, d), dtype=np.float32)
    if kind == "uniform":
        return rng.random((n, d), dtype=np.float32)
    if kind == "heavy":
        return np.exp(noise)
    if kind == "blobs":
        return rng.random((k, d), dtype=np.float32)[rng.integers(k, size=n)] + 0.1 * noise
    return noise


def one(kind: str, n: int, k: int, d: int, most: int) -> dict[str, float]:
    """Percent above the mean objective of 20 iterations of Lloyd's algorithm."""
    rng = np.random.default_rng((KINDS.index(kind), n, k, d))
    count = int(np.clip(WORK / (n * k * d), 2, most))
    found = []
    for _ in range(count):
        X = draw_points(kind, n, k, d, rng)
        start = {"init": X[rng.choice(n, k, replace=False)], "n_init": 1, "tol": 0}
        learned = lf.LearnedKMeans(k, max_iter=10, **start)
        found.append(
            [
                lf.KMeans(k, max_iter=20, **start).fit(X).inertia_,
                learned.set_params(compare_to_lloyd=False).fit(X).inertia_,
                learned.set_params(compare_to_lloyd=True).fit(X).inertia_,
            ]
        )
    lloyd, alone, beside = np.mean(found, axis=0).tolist()
    return {
        "alone": 100 * (alone / lloyd - 1),
        "beside": 100 * (beside / lloyd - 1),
        "trials": count,
    }


def shapes(quick: bool, keep: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """From few points to many; what there is so far is kept after each number of points."""
    rows: dict[str, dict[str, float]] = {}
    for n, most in MOST.items():
        for k in (2, 5, 30, 100):
            for d in (2, 10, 128, 784):
                if k * d > (most / 20 if quick else most):
                    continue
                for kind in KINDS:
                    name = f"{kind} n {max(n, 2 * k)} k {k} d {d}"
                    rows[name] = one(kind, max(n, 2 * k), k, d, 2 if quick else 8)
        print(n, _summary(rows), flush=True)
        keep({"rows": rows, **_summary(rows)})
    return {"rows": rows, **_summary(rows)}


def _summary(rows: dict[str, dict[str, float]]) -> dict[str, Any]:
    worst = sorted(rows, key=lambda name: -rows[name]["alone"])[:5]
    return {
        "shapes": len(rows),
        "worst beside": max(row["beside"] for row in rows.values()),
        "mean beside": float(np.mean([row["beside"] for row in rows.values()])),
        "mean alone": float(np.mean([row["alone"] for row in rows.values()])),
        "more than 0.2 % above Lloyd's alone": sum(row["alone"] > 0.2 for row in rows.values()),
        "worst alone": {name: rows[name]["alone"] for name in worst},
    }
