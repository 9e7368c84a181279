"""Measures what the cost model needs: iterations on 1 and 2 ranks of one thread, and all-gathers.

python benchmarks/scale/measure.py [SECONDS] writes results/scale.json. An iteration is the mean of
the first 20 from a random start; each of them is the fastest of many repeats, which do the same
work to the last bit. A repeat waits for a moment in which nothing else runs, but not for long. With
the option --again, times of the results that are there stay where they are faster.
"""

import json
import os
import pickle
import sys
import tempfile
import time
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import lloydformer as lf
from lloydformer.engines.ranks import join_ranks

sys.path.insert(0, str(Path(__file__).parents[1]))
from provenance import RESULTS, provenance, save

# n, d and k.
FITS = [
    (1 << 14, 16, 64),
    (1 << 14, 64, 256),
    (1 << 16, 8, 16),
    (1 << 16, 16, 64),
    (1 << 16, 32, 10),
    (1 << 16, 32, 100),
    (1 << 16, 128, 100),
]
ITERATIONS = 20
# Seconds that a repeat waits for a quiet moment.
PATIENCE = 0.1
# Bytes of a rank's message in an all-gather.
MESSAGES = [1 << power for power in (10, 13, 16, 18, 20, 22)]


def points(n_rows: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A mixture with middles uniform in [0, 1]^d and noise 0.15, and k of its rows."""
    random = np.random.default_rng(0)
    middles = random.random((k, d), dtype=np.float32)
    X = middles[random.integers(k, size=n_rows)]
    X += 0.15 * random.standard_normal(X.shape, dtype=np.float32)
    return X, X[random.choice(n_rows, size=k, replace=False)].copy()


def iterations(X: np.ndarray, start: np.ndarray, rank: int, size: int) -> list[float]:
    """Seconds of the first iterations of a fit."""
    heard: list[float] = []
    lf.KMeans(
        len(start),
        init=start,
        n_init=1,
        max_iter=ITERATIONS,
        tol=0,
        engine="native",
        callback=lambda progress: heard.append(progress.seconds),
    ).fit(lf.Shard(X[len(X) * rank // size : len(X) * (rank + 1) // size]))
    return heard


def quiet() -> bool:
    """Return whether this process is the only one that runs."""
    lines = Path("/proc/stat").read_text().splitlines()
    return any(line == "procs_running 1" for line in lines)


def wait(began: float, seconds: float) -> bool:
    """Wait for a quiet moment on rank 0; returns whether time is left."""
    ranks = join_ranks()
    if ranks.rank == 0:
        until = time.monotonic() + PATIENCE
        while not quiet() and time.monotonic() < until:
            time.sleep(0.003)
    return ranks.gather(time.monotonic() - began < seconds)[0]


def exchange(n_bytes: int) -> list[float]:
    """Seconds of some all-gathers of messages of so many bytes."""
    ranks, message, times = join_ranks(), os.urandom(n_bytes), []
    for _ in range(12):
        began = time.perf_counter()
        ranks.gather(message)
        times.append(time.perf_counter() - began)
    return [min(times[2:])]


def measure_rank(rank: int, size: int, seconds: float) -> dict[str, Any]:
    """The fastest of all repeats, as far as there is time."""
    data = {f"{n}, {d}, {k}": points(n, d, k) for n, d, k in FITS}
    work = {("iteration", name): partial(iterations, *data[name], rank, size) for name in data}
    work |= {("exchange", str(n)): partial(exchange, n) for n in MESSAGES if size > 1}
    best: dict[tuple[str, str], np.ndarray] = {}
    began, repeats = time.monotonic(), 0
    while repeats < 2 or wait(began, seconds):
        for key, function in work.items():
            wait(began, seconds)
            times = np.array(function())
            best[key] = times if key not in best else np.minimum(best[key], times)
        repeats += 1
    found: dict[str, Any] = {"iteration": {}, "exchange": {}, "repeats": repeats}
    for (kind, name), times in best.items():
        found[kind][name] = float(times.mean())
    return found


def on_ranks(size: int, seconds: float) -> dict[str, Any]:
    """Return the measurements of rank 0 of so many ranks."""
    with tempfile.TemporaryDirectory() as name:
        folder, children = Path(name), []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                _run(folder, rank, size, seconds)
                os._exit(0)
            children.append(child)
        ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if any(ended):
            sys.exit("a rank ended with an error")
        return pickle.loads((folder / "found").read_bytes())


def _run(folder: Path, rank: int, size: int, seconds: float) -> None:
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/store",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=60),
    )
    found = measure_rank(rank, size, seconds)
    if rank == 0:
        (folder / "found").write_bytes(pickle.dumps(found))
    dist.destroy_process_group()


def adding() -> float:
    """Bytes of summaries that are added in a second."""
    one = torch.ones(1 << 17, dtype=torch.float64)
    times = []
    for _ in range(50):
        began = time.perf_counter()
        one + one
        times.append(time.perf_counter() - began)
    return one.numel() * 8 / min(times)


def faster(found: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The faster times of two results."""
    for size, kinds in found.items():
        kinds["repeats"] += before[size]["repeats"]
        for kind in ("iteration", "exchange"):
            for name, took in before[size][kind].items():
                if name in kinds[kind]:
                    kinds[kind][name] = min(took, kinds[kind][name])
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    seconds = next((float(word) for word in sys.argv[1:] if word != "--again"), 20.0)
    found = {str(size): on_ranks(size, seconds * (2 * size - 1) / 4) for size in (1, 2)}
    if "--again" in sys.argv:
        found = faster(found, json.loads((RESULTS / "scale.json").read_text("utf-8"))["ranks"])
    result = {"iterations": ITERATIONS, "adding": adding(), "ranks": found}
    print(save("scale", {**result, "provenance": provenance()}))
