"""The cost model with the numbers that were measured, and a cluster that is assumed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cost_model import FLOAT64, Network, Problem, Worker, lloyd_pass
from scipy.optimize import nnls
from simulator import Cluster

Result = dict[str, Any]
RESULT = Path(__file__).parents[1] / "results" / "scale.json"

CLUSTER = Network(latency=50e-6, bandwidth=1.25e9)
"""A network of 10 Gbit/s, as it is usual between machines."""
TASK = 1e-3
"""Seconds in which Dask's scheduler hands out a task: "about 1ms", https://distributed.dask.org."""
MEMORY, DISK = 16e9, 1e9
"""Bytes of rows that a worker keeps, and bytes that its disk reads in a second."""


def load() -> Result:
    return json.loads(RESULT.read_text(encoding="utf-8"))


def shapes(result: Result) -> list[tuple[int, int]]:
    """d and k of the fits."""
    return [tuple(map(int, name.split(", "))) for name in result["ranks"]["1"]["iteration"]]


def worker_of(result: Result) -> Worker:
    """One thread of the machine, from the iterations on 1 rank.

    The squares of the relative errors are as small as they can be.
    """
    one, n_rows = result["ranks"]["1"], result["rows"]
    d, k = np.array(shapes(result)).T
    seconds = np.array(list(one["iteration"].values()))
    few = one["few"]
    columns = np.stack([np.full(len(d), n_rows), n_rows * d, n_rows * d * k, np.ones(len(d))], 1)
    small_d, small_k = shapes(result)[0]
    small = result["few"] * np.array([1, small_d, small_d * small_k, 1 / result["few"]])
    rows = np.vstack([columns / seconds[:, None], small / few])
    found, _ = nnls(rows, np.ones(len(rows)))
    per_row, per_number, per_product, per_pass = found.tolist()
    return Worker(per_row, per_number, per_product, per_pass, adding=result["adding"])


def loopback(result: Result) -> Network:
    """The all-gather of 2 ranks on this machine: latency and bandwidth."""
    times = result["ranks"]["2"]["exchange"]
    n_bytes, seconds = np.array([*map(float, times)]), np.array([*times.values()])
    rows = np.stack([np.ones_like(n_bytes), n_bytes], 1) / seconds[:, None]
    (latency, per_byte), _ = nnls(rows, np.ones(len(rows)))
    return Network(float(latency), float(1 / per_byte))


def simulated(result: Result, n_rows: int, d: int, k: int, size: int) -> float:
    """Seconds of an iteration on ranks of this machine."""
    problem = Problem(n_rows, d, k)
    cluster = Cluster(problem, size, worker_of(result), loopback(result), "ring")
    return cluster.run([lloyd_pass(problem)]).seconds[0]


def compared(result: Result) -> list[tuple[int, int, int, float, float]]:
    """Of each fit: ranks, d, k, seconds measured and simulated."""
    return [
        (size, d, k, result["ranks"][str(size)]["iteration"][f"{d}, {k}"],
         simulated(result, result["rows"], d, k, size))
        for d, k in shapes(result) for size in (1, 2)
    ]  # fmt: skip


def assumed_worker(result: Result) -> Worker:
    """A worker of the assumed cluster: a thread of this machine, with memory and a disk."""
    return replace(worker_of(result), memory=MEMORY, disk=DISK)


def summary_bytes(problem: Problem) -> int:
    return FLOAT64 * (problem.n_clusters * (problem.n_features + 1) + 1)
