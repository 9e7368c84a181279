"""Simulates clusters of 10 to 10,000 workers; writes results/scale_simulated.json.

The workers are threads of the machine that `measure.py` ran on, the network is assumed
(`fitted.py`).
"""

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from cost_model import (
    Pass,
    Problem,
    best_interval,
    depth_of,
    lloyd_pass,
    parallel_passes,
    plusplus_passes,
    ring_seconds,
    shares,
    subtrees,
    tree_seconds,
    with_restarts,
)
from fitted import CLUSTER, TASK, assumed_worker, load
from simulator import Cluster, Trouble

sys.path.insert(0, str(Path(__file__).parents[1]))
from provenance import provenance, save

SIZES = (10, 100, 1000, 10_000)
ROWS = (10**9, 10**12)
# d and k.
SHAPES = ((16, 64), (128, 1000))
FAN_INS = (2, 4, 16, 64, 10_000)
# The fan-in of trees, unless it is varied.
USUAL = 16
# One worker of 100 takes 3 times as long, in every pass another one.
SLOW = (0.01, 3.0)
JITTER = 0.05
# Rows of a worker, where slow workers and failures are looked at.
EACH = 10**8
DAY = 86_400.0
# Mean time until a worker fails.
LIFE = 30 * DAY
# Seconds until a failure is noticed, and bytes in a second with which rows are read again.
NOTICED, RELOAD = 30.0, 1e9
# Seconds until ranks run again after a failure, without the rows, and of a checkpoint.
RESTART, CHECKPOINT = 120.0, 1.0
Result = dict[str, Any]


def network_alone(problem: Problem, n_workers: int, one: Pass, **settings: Any) -> float:
    """Seconds of the exchange of a pass, if the workers needed no time to map rows."""
    idle = replace(
        assumed_worker(load()),
        per_row=0,
        per_number=0,
        per_product=0,
        per_pass=0,
        disk=float("inf"),
    )
    return Cluster(problem, n_workers, idle, CLUSTER, **settings).run([one]).seconds[0]


def ring(problem: Problem, n_workers: int, one: Pass) -> float:
    """An all-gather of all ranks in closed form, and the additions that everyone does."""
    leaves = shares(problem.n_leaves, n_workers)
    counts = [subtrees(*share, problem.n_leaves) for share in leaves]
    added = sum(counts) * one.summary / assumed_worker(load()).adding
    return ring_seconds(n_workers, max(counts) * one.summary, CLUSTER) + added


def iterations() -> list[Result]:
    """An iteration of each size: the map, and the exchange in three ways."""
    found = []
    for d, k in SHAPES:
        for n_rows in ROWS:
            for size in SIZES:
                problem, worker = Problem(n_rows, d, k), assumed_worker(load())
                one, most = lloyd_pass(problem), -(-problem.n_leaves // size) * problem.leaf
                scheduled = replace(CLUSTER, per_task=TASK)
                client = Cluster(problem, size, worker, scheduled, fan_in=USUAL).run([one])
                found.append(
                    {
                        "d": d,
                        "k": k,
                        "rows": n_rows,
                        "workers": size,
                        "map": worker.seconds(problem, one, most),
                        "in_memory": most * problem.row_bytes <= worker.memory,
                        "ring": ring(problem, size, one),
                        "tree": network_alone(problem, size, one, fan_in=USUAL),
                        "scheduled": client.seconds[0],
                    }
                )
    return found


def fan_ins() -> list[Result]:
    """The exchange of an iteration by the fan-in of the tree."""
    found = []
    for d, k in SHAPES:
        for size in SIZES:
            for fan_in in FAN_INS:
                problem = Problem(10**12, d, k)
                if fan_in <= size or fan_in == FAN_INS[-1]:
                    seconds = network_alone(
                        problem, size, lloyd_pass(problem), fan_in=min(fan_in, size)
                    )
                    found.append(
                        {
                            "d": d,
                            "k": k,
                            "workers": size,
                            "fan_in": min(fan_in, size),
                            "depth": depth_of(size, fan_in),
                            "seconds": seconds,
                        }
                    )
    return found


def seedings() -> list[Result]:
    """k-means++ and k-means|| in full, on trees."""
    found = []
    for d, k in SHAPES:
        for size in SIZES:
            problem, worker = Problem(10**9, d, k), assumed_worker(load())
            cluster = Cluster(problem, size, worker, CLUSTER, fan_in=USUAL)
            row: Result = {"d": d, "k": k, "workers": size}
            for name, passes in (
                ("plusplus", plusplus_passes(problem)[:2]),
                ("parallel", parallel_passes(problem)),
            ):
                seconds = sum(cluster.run(passes).seconds)
                rounds = k - 1 if name == "plusplus" else 1  # all rounds of k-means++ are alike
                row[name] = rounds * seconds
                row[f"{name}_passes"] = rounds * len(passes)
            found.append(row)
    return found


def troubles() -> list[Result]:
    """Return the cost of slow workers and failures, with so many rows on each worker."""
    found = []
    for size in SIZES:
        problem = Problem(EACH * size, 16, 64)
        even = _mean(problem, size, Trouble())
        rate, reading = size / LIFE, EACH * problem.row_bytes / RELOAD
        interval = best_interval(CHECKPOINT, rate)
        again = with_restarts(interval + CHECKPOINT, rate, RESTART + reading)
        found.append(
            {
                "workers": size,
                "seconds": even,
                "jitter": _mean(problem, size, Trouble(jitter=JITTER)) / even,
                "slow": _mean(problem, size, Trouble(JITTER, *SLOW)) / even,
                "failures_a_day": rate * DAY,
                "interval": interval,
                "replaced": 1 + rate * (NOTICED + reading + even),
                "restarted": again / interval,
            }
        )
    return found


def _mean(problem: Problem, size: int, trouble: Trouble) -> float:
    """Seconds of an iteration, on average over some."""
    worker = assumed_worker(load())
    cluster = Cluster(problem, size, worker, CLUSTER, fan_in=USUAL, trouble=trouble)
    passes = [lloyd_pass(problem)] * max(5, 4000 // size)
    return float(np.mean(cluster.run(passes).seconds))


def takeovers() -> list[Result]:
    """The number of workers from which the exchange of an iteration takes longer than its map."""
    found = []
    for d, k in SHAPES:
        for n_rows in ROWS:
            problem, worker = Problem(n_rows, d, k), assumed_worker(load())
            one = lloyd_pass(problem)
            exchanges = {
                "ring": lambda size, p=problem, o=one: ring(p, size, o),
                "tree": lambda size, o=one: both_ways(size, o),
                "scheduler": lambda size: size * TASK,
            }
            row: Result = {"d": d, "k": k, "rows": n_rows}
            for name, exchange in exchanges.items():
                size = 2
                while (
                    size < 1e7
                    and exchange(size) < n_rows / size * worker.seconds(problem, one, 10**6) / 10**6
                ):
                    size = math.ceil(size * 1.02)
                row[name] = size
            found.append(row)
    return found


def both_ways(size: int, one: Pass) -> float:
    """Centers down a tree and summaries up, in closed form."""
    depth = depth_of(size, USUAL)
    return tree_seconds(depth, USUAL, one.broadcast, CLUSTER) + tree_seconds(
        depth, USUAL, one.summary, CLUSTER
    )


if __name__ == "__main__":
    print(
        save(
            "scale_simulated",
            {
                "iterations": iterations(),
                "fan_ins": fan_ins(),
                "seedings": seedings(),
                "troubles": troubles(),
                "takeovers": takeovers(),
                "provenance": provenance(),
            },
        )
    )
