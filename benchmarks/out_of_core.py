"""A fit of 20M x 16 float32 from a mapped file, k 20: anonymous memory, seconds, points per second.

Each measurement runs in a process of its own, once with the file dropped from the page cache
(cold) and once with all of it there (warm); one pass over the data with and without reading ahead.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from provenance import provenance, save

N, D, K, ITERATIONS, REPEATS = 20_000_000, 16, 20, 10, 3


def write(path: Path) -> None:
    """A mixture of K clusters, in pieces."""
    rng = np.random.default_rng(0)
    middles = rng.uniform(-3, 3, size=(K, D)).astype(np.float32)
    points = np.lib.format.open_memmap(path, "w+", np.float32, (N, D))
    for start in range(0, N, 1 << 18):
        part = points[start : start + (1 << 18)]
        part[:] = middles[rng.integers(K, size=len(part))]
        part += rng.standard_normal(part.shape, dtype=np.float32)
    points.flush()


def forget(path: Path) -> None:
    """Drop the file from the page cache, as far as the system does what it is asked."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_ahead_kb() -> list[str]:
    """How far the system itself reads ahead, for each disk."""
    disks = sorted(Path("/sys/block").glob("*/queue/read_ahead_kb"))
    return [disk.read_text().strip() for disk in disks]


def anonymous() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def fit(path: Path, init: str) -> dict[str, Any]:
    """Return time and memory of a fit; the peak of anonymous memory is sampled every 10 ms."""
    import lloydformer as lf

    before, heard = anonymous(), list[Any]()
    peak, over = [before], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.perf_counter()
    model = lf.KMeans(
        K, init=init, n_init=1, max_iter=ITERATIONS, tol=0.0, random_state=0, callback=heard.append
    ).fit(lf.data.open_dataset(path))
    took = time.perf_counter() - began
    over.set()
    watcher.join()
    iterating = sum(p.seconds for p in heard)
    return {
        "seconds": took,
        "seconds_iterating": iterating,
        "n_iter": model.n_iter_,
        "points_per_second": N * len(heard) / iterating,
        "inertia": model.inertia_,
        "anonymous_bytes_above_import": max(peak[0], anonymous()) - before,
    }


def one_pass(path: Path, reads_ahead: str) -> dict[str, Any]:
    """One assignment of all points to K centers."""
    import torch

    from lloydformer.data.blocks import TensorBlocks
    from lloydformer.engines.chunked import Chunked
    from lloydformer.plans.assign import NearestSums

    points = torch.from_numpy(np.load(path, mmap_mode="c"))
    data = TensorBlocks(points, given_origin=torch.zeros(D), mapped=reads_ahead == "ahead")
    with Chunked().open(data) as session:
        centers = torch.from_numpy(np.random.default_rng(1).normal(size=(K, D))).float()
        began = time.perf_counter()
        session.fold(NearestSums(centers))
    took = time.perf_counter() - began
    return {"seconds": took, "points_per_second": N / took}


MEASUREMENTS: dict[str, Callable[[Path, str], dict[str, Any]]] = {"fit": fit, "pass": one_pass}


def alone(path: Path, what: str, how: str, *, cold: bool) -> dict[str, Any]:
    """In a process of its own; the last line that it prints is the result."""
    forget(path) if cold else path.read_bytes()
    command = [sys.executable, __file__, what, str(path), how]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        write(path := Path(folder) / "points.npy")
        for init in ("k-means||", "k-means++", "random"):
            for cold in (True, False):
                name = f"fit, {init}, {'cold' if cold else 'warm'}"
                rows[name] = alone(path, "fit", init, cold=cold)
                print(name, rows[name], flush=True)
        for number in range(REPEATS):
            for how in ("ahead", "plain"):
                for cold in (True, False):
                    name = f"pass, {how}, {'cold' if cold else 'warm'}"
                    found = alone(path, "pass", how, cold=cold)
                    rows.setdefault(name, []).append(found["seconds"])
                    print(number, name, found, flush=True)
    settings = {
        "n": N,
        "d": D,
        "k": K,
        "dtype": "float32",
        "iterations": ITERATIONS,
        "read_ahead_kb": read_ahead_kb(),
    }
    print(
        save(
            "out_of_core",
            {"provenance": provenance("scikit-learn"), "settings": settings, "rows": rows},
        )
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(MEASUREMENTS[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])))
    else:
        main()
