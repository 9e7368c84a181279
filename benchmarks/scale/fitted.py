"""The cost model with the numbers that were measured, and a cluster that is assumed."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from cost_model import Network, Problem, Worker, lloyd_pass
from scipy.optimize import nnls
from simulator import Cluster

Result = dict[str, Any]
RESULT = Path(__file__).parents[1] / "results" / "scale.json"

# A network of 10 Gbit/s, as it is usual between machines.
CLUSTER = Network(latency=50e-6, bandwidth=1.25e9)
# Seconds in which Dask's scheduler hands out a task: "about 1ms", https://distributed.dask.org.
TASK = 1e-3
# Bytes of rows that a worker keeps, and bytes that its disk reads in a second.
MEMORY, DISK = 16e9, 1e9


@cache
def load() -> Result:
    return json.loads(RESULT.read_text(encoding="utf-8"))


@cache
def load_cluster() -> Result:
    """Return the measurements of `benchmarks/cluster.py`."""
    return json.loads(RESULT.with_name("cluster.json").read_text(encoding="utf-8"))


def fits(result: Result) -> list[tuple[int, int, int]]:
    """n, d and k of the fits."""
    return [tuple(map(int, name.split(", "))) for name in result["ranks"]["1"]["iteration"]]


def worker_of(result: Result) -> Worker:
    """One thread of the machine, from the iterations on 1 rank.

    The squares of the relative errors are as small as they can be.
    """
    n, d, k = np.array(fits(result)).T
    seconds = np.array(list(result["ranks"]["1"]["iteration"].values()))
    columns = np.stack([n, n * d, n * d * k, np.ones(len(n))], axis=1) / seconds[:, None]
    per_row, per_number, per_product, per_pass = nnls(columns, np.ones(len(n)))[0].tolist()
    return Worker(per_row, per_number, per_product, per_pass, adding=result["adding"])


def loopback(result: Result) -> Network:
    """The all-gather of 2 ranks on this machine: latency and bandwidth."""
    times = result["ranks"]["2"]["exchange"]
    n_bytes, seconds = np.array([*map(float, times)]), np.array([*times.values()])
    rows = np.stack([np.ones_like(n_bytes), n_bytes], 1) / seconds[:, None]
    (latency, per_byte), _ = nnls(rows, np.ones(len(rows)))
    return Network(float(latency), float(1 / per_byte))


def simulate_fit(result: Result, n_rows: int, d: int, k: int, size: int) -> float:
    """Seconds of an iteration on ranks of this machine."""
    worker = worker_of(result)
    if size > 1:
        worker = replace(worker, per_pass=worker.per_pass + sharing(result))
    return _play(result, worker, (n_rows, d, k), size)


def sharing(result: Result) -> float:
    """Seconds that a pass takes longer because there are several ranks: to ask, pickle and merge.

    From the first fit on 2 ranks, the smallest one; the others are predicted.
    """
    first = fits(result)[0]
    took = next(iter(result["ranks"]["2"]["iteration"].values()))
    return max(0.0, took - _play(result, worker_of(result), first, 2))


def _play(result: Result, worker: Worker, fit: tuple[int, int, int], size: int) -> float:
    problem = Problem(*fit)
    cluster = Cluster(problem, size, worker, loopback(result), "ring")
    return float(cluster.run([lloyd_pass(problem)]).seconds[0])


def compare_fits(result: Result) -> list[tuple[int, int, int, int, float, float]]:
    """Return n, d, k, ranks, seconds measured and simulated of each fit."""
    return [
        (
            n,
            d,
            k,
            size,
            result["ranks"][str(size)]["iteration"][f"{n}, {d}, {k}"],
            simulate_fit(result, n, d, k, size),
        )
        for n, d, k in fits(result)
        for size in (1, 2)
    ]


def assumed_worker(result: Result) -> Worker:
    """A worker of the assumed cluster: a thread of this machine, with memory and a disk."""
    worker = worker_of(result)
    per_pass = worker.per_pass + sharing(result)
    return replace(worker, per_pass=per_pass, memory=MEMORY, disk=DISK)
