"""How fast a GPU is: other algorithms, heavy tails, data larger than its memory, training.

`python benchmarks/gpu_algorithms.py [iterations|fits|larger|training|tails ...] [-o FILE]`
measures on the GPU of this machine and writes benchmarks/results/gpu_algorithms.json, the parts
that were asked for.
`python benchmarks/gpu_algorithms.py page` writes the tables of docs/gpu.md from it.
Engines take turns; times are medians of whole calls, results left on the GPU.
"""

import argparse
import json
import os
import re
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from provenance import RESULTS, provenance
from torch import Tensor

import lloydformer as lf
from lloydformer.data.host_memory import pinnable_memory
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.estimators import devices
from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.lloyd import has_kernel, lloyd_path, lloyd_step

N, D, K = 1_000_000, 32, 10
ITERATED = {
    "soft": lf.SoftKMeans,
    "spherical": lf.SphericalKMeans,
    "trimmed": lf.TrimmedKMeans,
    "robust": lf.RobustKMeans,
}
FITTED: dict[str, Callable[..., Any]] = {
    "RelocatingKMeans": lambda **given: lf.RelocatingKMeans(K, random_state=0, **given),
    "LearnedKMeans": lambda **given: lf.LearnedKMeans(K, max_iter=10, random_state=0, **given),
    "KMedoids, the paper's draws": lambda **given: lf.KMedoids(
        K, random_state=0, method="paper", max_iter=20, **given
    ),
    "KMeans, k-means||": lambda **given: lf.KMeans(
        K, random_state=0, init="k-means||", n_init=1, **given
    ),
}
LARGE = 50_000_000
GIGABYTE = 10**9


def mixture() -> np.ndarray:
    """Thirty groups around normal middles, in float32."""
    rng = np.random.default_rng(0)
    middles = rng.normal(size=(3 * K, D)).astype(np.float32)
    noise = rng.standard_normal((N, D), dtype=np.float32)
    return middles[rng.integers(3 * K, size=N)] + noise


def time_fit(model: Any, X: Any) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    model.fit(X)
    torch.cuda.synchronize()
    return time.perf_counter() - began


def iterations() -> dict[str, Any]:
    """Milliseconds of an iteration: by kernels, and by PyTorch on the same GPU."""
    x = torch.randn(N, D, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    found: dict[str, Any] = {}
    for name, make in ITERATED.items():
        times: dict[tuple[str, int], list[float]] = {}
        for repeat in range(6):
            for engine, counts in (("cuda", (10, 40)), ("chunked", (2, 6))):
                for count in counts:
                    model = make(K, init=x[:K].clone(), max_iter=count, tol=0, engine=engine)
                    took = time_fit(model, x)
                    assert model.n_iter_ == count
                    if repeat:  # the first ones compile
                        times.setdefault((engine, count), []).append(took)
        middle = {key: statistics.median(values) for key, values in times.items()}
        kernels = 1e3 * (middle["cuda", 40] - middle["cuda", 10]) / 30
        plain = 1e3 * (middle["chunked", 6] - middle["chunked", 2]) / 4
        found[name] = {"kernels": kernels, "PyTorch": plain}
        print(name, found[name], flush=True)
    return found


def fits() -> dict[str, Any]:
    """Seconds of whole fits: on the GPU, and by the native engine on two cores of this machine."""
    X = mixture()
    x, everyone = torch.from_numpy(X).cuda(), os.sched_getaffinity(0)
    found: dict[str, Any] = {}
    for name, make in FITTED.items():
        runs: dict[str, list[list[float]]] = {"GPU": [], "two cores": []}
        time_fit(make(engine="cuda"), x)
        for _ in range(3):
            for _ in range(2):
                model = make(engine="cuda")
                runs["GPU"].append([time_fit(model, x), model.inertia_, model.n_iter_])
            os.sched_setaffinity(0, set(sorted(everyone)[:2]))
            model = make(engine="native")
            runs["two cores"].append([time_fit(model, X), model.inertia_, model.n_iter_])
            os.sched_setaffinity(0, everyone)
        found[name] = runs
        print(name, {way: statistics.median(r[0] for r in rows) for way, rows in runs.items()})
    return found


def bandwidth() -> float:
    """Bytes a second from pinned memory to the GPU."""
    here = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    there = torch.empty_like(here, device="cuda")
    took = []
    for _ in range(12):
        torch.cuda.synchronize()
        began = time.perf_counter()
        there.copy_(here, non_blocking=True)
        torch.cuda.synchronize()
        took.append(time.perf_counter() - began)
    return here.nbytes / statistics.median(took)


def larger() -> dict[str, Any]:
    """Seconds of an iteration of k-means over 6.4 GB; torch may take too little memory for them."""
    found: dict[str, Any] = {"bandwidth": bandwidth()}
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        rows = np.lib.format.open_memmap(path, "w+", dtype=np.float32, shape=(LARGE, D))
        base = np.random.default_rng(0).standard_normal((N, D), dtype=np.float32)
        for start in range(0, LARGE, N):
            rows[start : start + N] = base + np.float32(1e-2 * (start // N))
        rows.flush()
        mapped = np.load(path, mmap_mode="r")
        ways = (
            (3, "streamed from a mapped file", mapped, pinnable_memory),
            (3, "the same through a thread", mapped, lambda: 0),
            (9.5, "mapped, float16 copy kept", mapped, pinnable_memory),
            (9.5, "in memory, float16 copy kept", np.array(mapped), pinnable_memory),
        )
        for limit, name, X, lockable in ways:
            torch.cuda.set_per_process_memory_fraction(limit * GIGABYTE / total)
            devices.pinnable_memory = lockable
            for k in (10, 64):
                found[f"{name}, k {k}"] = one_larger(X, k) | {"limit": limit * GIGABYTE}
                print(name, k, found[f"{name}, k {k}"], flush=True)
        torch.cuda.set_per_process_memory_fraction(1.0)
    return found


def one_larger(X: np.ndarray, k: int) -> dict[str, float]:
    times: list[float] = []
    torch.cuda.reset_peak_memory_stats()
    model = lf.KMeans(
        k,
        init=X[:k].copy(),
        max_iter=12,
        tol=0,
        device="cuda",
        callback=lambda progress: times.append(time.perf_counter()),
    )
    began = time.perf_counter()
    model.fit(X)
    whole = time.perf_counter() - began
    each = statistics.median(np.diff(times).tolist())
    return {
        "seconds": each,
        "bytes": float(X.nbytes),
        "whole": whole,
        "peak": float(torch.cuda.max_memory_allocated()),
    }


def steps_by_torch(points: Tensor, centers: Tensor, seeds: Tensor, n_steps: int) -> None:
    """Run the same steps as `lloyd_path`, without a kernel."""
    for number in range(n_steps):
        centers = lloyd_step(points, centers, seeds, torch.full_like(seeds[0], number))


def training() -> dict[str, Any]:
    """Milliseconds of Lloyd steps on 320 tasks as training draws them: by a kernel, by PyTorch."""
    points, centers = draw_unseen(lf.learning.Tasks(), n_tasks=320, device="cuda")
    seeds = torch.zeros(1, dtype=torch.int64, device="cuda")
    assert has_kernel(points, centers.shape[2])
    ways = {"kernels": lloyd_path, "PyTorch": steps_by_torch}
    found: dict[str, Any] = {}
    for n_steps in (20, 1):
        times: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(31):
            for way, steps in ways.items():
                torch.cuda.synchronize()
                began = time.perf_counter()
                steps(points, centers, seeds, n_steps)
                torch.cuda.synchronize()
                times[way].append(1e3 * (time.perf_counter() - began))
        name = f"Lloyd steps on 320 tasks: {n_steps}"
        found[name] = {way: statistics.median(took[1:]) for way, took in times.items()}
        print(name, found[name], flush=True)
    return found


def tails() -> dict[str, Any]:
    """Milliseconds of an iteration of k-means on normal rows times exp(s z), and wrong labels."""
    found: dict[str, Any] = {}
    k = 1000  # with 10 clusters the launches take longer than the close calls, whatever the tails
    for d in (32, 128):
        for spread in range(4):
            drawn = torch.Generator("cuda").manual_seed(spread)
            x = torch.randn(N, d, device="cuda", generator=drawn)
            x *= torch.exp(spread * torch.randn(N, 1, device="cuda", generator=drawn))
            times: dict[int, list[float]] = {10: [], 30: []}
            for repeat in range(6):
                for count, took in times.items():
                    model = lf.KMeans(k, init=x[:k].clone(), n_init=1, max_iter=count, tol=0)
                    seconds = time_fit(model, x)
                    assert model.n_iter_ == count
                    if repeat:  # the first ones compile
                        took.append(seconds)
            short, long = (statistics.median(took) for took in times.values())
            row = {
                "iteration": 1e3 * (long - short) / 20,
                "wrong": count_wrong_labels(x, model.cluster_centers_, model.labels_),
            }
            found[f"{d} features, {k} clusters, s {spread}"] = row
            print(d, k, spread, row, flush=True)
    return found


def count_wrong_labels(x: Tensor, centers: Tensor, labels: Tensor) -> int:
    """Rows with a center that is nearer than that of their label, by differences in float64."""
    size = max(1, 2**30 // centers.numel())  # 8 GiB of differences
    wrong = 0
    for part, found in zip(x.split(size), labels.long().split(size), strict=True):
        squares = (part.double()[:, None] - centers.double()).square_().sum(dim=2)
        wrong += int((squares.gather(1, found[:, None])[:, 0] > squares.amin(dim=1)).sum())
    return wrong


PARTS = {
    "iterations": iterations,
    "fits": fits,
    "larger": larger,
    "training": training,
    "tails": tails,
}


def iterations_table(rows: dict[str, Any]) -> list[list[str]]:
    table = [["", "kernels", "PyTorch", "times faster"]]
    for name, row in rows.items():
        kernels, plain = row["kernels"], row["PyTorch"]
        table.append([name, f"{kernels:.2f} ms", f"{plain:.1f} ms", f"{plain / kernels:.0f}"])
    return table


def fits_table(rows: dict[str, Any]) -> list[list[str]]:
    table = [["", "GPU", "two CPU cores", "times faster", "inertia, GPU and CPU"]]
    for name, runs in rows.items():
        gpu, cores = (statistics.median(run[0] for run in runs[way]) for way in runs)
        ends = (f"{runs[way][0][1]:.7g}" for way in runs)
        times = (f"{1e3 * gpu:.0f} ms", f"{1e3 * cores:.0f} ms", f"{cores / gpu:.0f}")
        table.append([name.replace("|", r"\|"), *times, ", ".join(ends)])
    return table


def larger_table(rows: dict[str, Any]) -> list[list[str]]:
    table = [
        [
            "rows",
            "an iteration",
            "GB/s",
            "of the link",
            "whole fit",
            "torch may take",
            "takes",
        ]
    ]
    for name, row in rows.items():
        if name == "bandwidth":
            continue
        rate = row["bytes"] / row["seconds"]
        brought = [f"{rate / GIGABYTE:.0f}", f"{rate / rows['bandwidth']:.2f}"]
        table.append(
            [
                name,
                f"{1e3 * row['seconds']:.0f} ms",
                *(["", ""] if "kept" in name else brought),
                f"{row['whole']:.1f} s",
                f"{row['limit'] / GIGABYTE:g} GB",
                f"{row['peak'] / GIGABYTE:.1f} GB",
            ]
        )
    return table


def tails_table(rows: dict[str, Any]) -> list[list[str]]:
    table = [["", *(f"s = {spread}" for spread in range(4))]]
    for name, row in rows.items():
        shape, spread = name.rsplit(", s ", 1)
        if spread == "0":
            table.append([shape])
        table[-1].append(f"{row['iteration']:.2f} ms")
    return table


TABLES = {
    "iterations": iterations_table,
    "fits": fits_table,
    "larger": larger_table,
    "training": iterations_table,
    "tails": tails_table,
}
_PLACE = re.compile(r"(<!-- gpu: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def fill_page(page: str, result: dict[str, Any]) -> str:
    """Return docs/gpu.md with its tables."""

    def write_table(place: re.Match[str]) -> str:
        head, *rows = TABLES[place[2]](result[place[2]])
        lines = [head, ["---"] * len(head), *rows]
        return place[1] + "".join(f"| {' | '.join(line)} |\n" for line in lines) + place[4]

    return _PLACE.sub(write_table, page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "gpu_algorithms.json")
    asked = parser.parse_args()
    result = json.loads(asked.output.read_text()) if asked.output.exists() else {}
    if asked.parts == ["page"]:
        path = Path(__file__).parents[1] / "docs" / "gpu.md"
        atomic_write_text(path, fill_page(path.read_text(encoding="utf-8"), result))
        return
    warnings.filterwarnings("ignore")
    for part in asked.parts:
        result[part] = PARTS[part]()
        result.setdefault("provenance", {})[part] = provenance()
        atomic_write_text(asked.output, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
