"""A learned step beside an iteration of Lloyd's algorithm, and what each reaches in equal time."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from symmetric_shapes import draw_points

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import choose
from lloydformer.learning.symmetric.model import plan_of
from lloydformer.plans.contract import Plan, apply_update
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.symmetric import measure_spread

STEPS = 10
SIZES = ((200_000, 32, 10), (100_000, 16, 64), (1_000_000, 2, 5), (100_000, 128, 100))


def fastest(work: Callable[[], Any], count: int) -> float:
    """Milliseconds of the fastest of some calls."""
    taken = []
    for _ in range(count):
        began = perf_counter()
        work()
        taken.append(1000 * (perf_counter() - began))
    return min(taken)


def step(engine: str, n: int, d: int, k: int, count: int) -> dict[str, float]:
    """Ten steps of each from the same start, a tenth of the time; Lloyd's skips no work."""
    data = TensorBlocks(torch.from_numpy(draw_points("blobs", n, k, d, np.random.default_rng(0))))
    chosen = choose(engine, data)
    if engine == "native":
        chosen.bounded = False
    with chosen.open(data) as session:
        learned = replace(
            plan_of(lf.learning.load_pretrained(), STEPS), spread=measure_spread(session)
        )

        def course(plan: Plan) -> None:
            session.forget()
            centers = data.take(torch.arange(k)).double()
            for iteration in range(STEPS):
                found = plan.step(session, centers.to(data.dtype), iteration)
                centers = apply_update(found.update, centers, plan.directions)

        one, ten = (
            fastest(lambda p=plan: course(p), count) / STEPS for plan in (MeansPlan(), learned)
        )
    return {"lloyd_ms": one, "learned_ms": ten, "ratio": ten / one}


def in_equal_time(X: np.ndarray, k: int, n_trials: int) -> dict[str, float]:
    """Mean objectives: what a fit reaches, and the best of as many KMeans fits as it has time for.

    In percent above the best that anyone has found.
    """
    found: dict[str, list[float]] = {}
    taken: dict[str, list[float]] = {}
    for seed in range(n_trials):
        for init in ("random", "k-means++"):
            began = perf_counter()
            model = lf.LearnedKMeans(k, init=init, n_init=1, max_iter=10, random_state=seed).fit(X)
            time = perf_counter() - began
            name = f"learned from {init}"
            found.setdefault(name, []).append(model.inertia_)
            taken.setdefault(name, []).append(time)
            for other in ("random", "k-means++"):
                best, count = _restarts(X, k, other, seed, time)
                found.setdefault(f"KMeans from {other}, time of {name}", []).append(best)
                taken.setdefault(f"KMeans from {other}, time of {name}: fits", []).append(count)
    least = min(min(values) for values in found.values())
    excess = {name: 100 * (float(np.mean(v)) / least - 1) for name, v in found.items()}
    return excess | {f"{name} (mean)": float(np.mean(v)) for name, v in taken.items()}


def _restarts(X: np.ndarray, k: int, init: str, seed: int, time: float) -> tuple[float, int]:
    """The best of KMeans fits one after another, the last of which begins in time; and how many."""
    began, best, count = perf_counter(), np.inf, 0
    while count == 0 or perf_counter() - began < time:
        model = lf.KMeans(k, init=init, n_init=1, random_state=1000 * seed + count).fit(X)
        best, count = min(best, model.inertia_), count + 1
    return best, count


def times(folder: Path, quick: bool) -> dict[str, Any]:
    count, n_trials = (3, 2) if quick else (20, 10)
    steps = {}
    for engine in ("native", "chunked"):
        for size in SIZES[: 2 if quick or engine == "chunked" else None]:
            name = f"{engine} n {size[0]} d {size[1]} k {size[2]}"
            steps[name] = step(engine, *size, count)
            print(name, {k: round(v, 2) for k, v in steps[name].items()}, flush=True)
    rng = np.random.default_rng(1)
    problems = {
        "paper's task, n 512 d 32 k 10": (draw_points("blobs", 512, 10, 32, rng), 10),
        "blobs, n 100,000 d 16 k 64": (draw_points("blobs", 100_000, 64, 16, rng), 64),
        "normal, n 20,000 d 10 k 30": (draw_points("normal", 20_000, 30, 10, rng), 30),
    }
    for name, k in (("optdigits", 10), ("musk", 10), ("pendigits", 30), ("shuttle", 30)):
        if (folder / f"{name}.npz").exists():
            X = np.load(folder / f"{name}.npz")["X"].astype(np.float32)
            span = np.ptp(X, axis=0)
            X = (X - X.min(axis=0)) / np.where(span > 0, span, 1)
            problems[f"{name}, k {k}"] = (np.ascontiguousarray(X), k)
    equal = {}
    for name, (X, k) in problems.items():
        equal[name] = in_equal_time(X, k, n_trials)
        print(name, {a: round(b, 3) for a, b in equal[name].items()}, flush=True)
    return {"steps": steps, "equal time": equal}
