"""Measures what the cost model needs: iterations on 1 and 2 ranks of one thread, and all-gathers.

python benchmarks/scale/measure.py writes results/scale.json. An iteration is the mean of the first
20 from a random start; each of them is the fastest of some repeats, as the repeats do the same
work to the last bit and whatever else the machine does only adds to it.
"""

import os
import pickle
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import lloydformer as lf
from lloydformer.engines.ranks import joined_ranks

sys.path.insert(0, str(Path(__file__).parents[1]))
from provenance import provenance, save

SHAPES = [(2, 5), (16, 64), (32, 10), (32, 100), (64, 256), (128, 100)]
"""d and k of the fits."""
ROWS = 1 << 18
FEW = 1 << 13
"""Rows of a fit that is hardly more than its fixed costs."""
ITERATIONS, REPEATS = 20, 6
MESSAGES = [1 << power for power in (10, 13, 16, 18, 20, 22)]
"""Bytes of a rank's message in an all-gather."""


def points(n_rows: int, d: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A mixture with middles uniform in [0, 1]^d and noise 0.15, and k of its rows."""
    random = np.random.default_rng(0)
    middles = random.random((k, d), dtype=np.float32)
    X = middles[random.integers(k, size=n_rows)]
    X += 0.15 * random.standard_normal(X.shape, dtype=np.float32)
    return X, X[random.choice(n_rows, size=k, replace=False)].copy()


def iteration(X: np.ndarray, start: np.ndarray, rank: int, size: int) -> float:
    """Seconds of an iteration, on average over the first ones."""
    times = []
    for _ in range(REPEATS):
        heard: list[float] = []
        lf.KMeans(
            len(start), init=start, n_init=1, max_iter=ITERATIONS, tol=0, engine="native",
            callback=lambda progress, heard=heard: heard.append(progress.seconds),
        ).fit(lf.Shard(X[len(X) * rank // size : len(X) * (rank + 1) // size]))  # fmt: skip
        times.append(heard)
    shortest = min(map(len, times))
    return float(np.min([each[:shortest] for each in times], axis=0).mean())


def exchanges() -> dict[str, float]:
    """Seconds of an all-gather, by the bytes of a rank's message."""
    ranks, found = joined_ranks(), {}
    for n_bytes in MESSAGES:
        message, times = os.urandom(n_bytes), []
        for _ in range(60):
            began = time.perf_counter()
            ranks.gather(message, n_bytes)
            times.append(time.perf_counter() - began)
        found[str(n_bytes)] = float(np.min(times[2:]))
    return found


def measured(rank: int, size: int) -> dict[str, Any]:
    rows = {}
    for d, k in SHAPES:
        X, start = points(ROWS, d, k)
        rows[f"{d}, {k}"] = iteration(X, start, rank, size)
    X, start = points(FEW * size, *SHAPES[0])
    return {"iteration": rows, "few": iteration(X, start, rank, size), "exchange": exchanges()}


def on_ranks(size: int) -> dict[str, Any]:
    """What rank 0 of so many ranks measures."""
    with tempfile.TemporaryDirectory() as name:
        folder, children = Path(name), []
        for rank in range(size):
            child = os.fork()
            if child == 0:
                _run(folder, rank, size)
                os._exit(0)
            children.append(child)
        ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if any(ended):
            sys.exit("a rank ended with an error")
        return pickle.loads((folder / "found").read_bytes())


def _run(folder: Path, rank: int, size: int) -> None:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=size, timeout=timedelta(seconds=60))  # fmt: skip
    found = measured(rank, size)
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


if __name__ == "__main__":
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    began = time.perf_counter()
    found = {str(size): on_ranks(size) for size in (1, 2)}
    print(save("scale", {
        "rows": ROWS, "few": FEW, "iterations": ITERATIONS, "repeats": REPEATS,
        "adding": adding(), "ranks": found, "seconds": time.perf_counter() - began,
        "provenance": provenance(),
    }))  # fmt: skip
