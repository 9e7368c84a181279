"""Costs of a pass over the points on a cluster: bytes, operations, and seconds in closed form.

A pass is a fold: every worker maps its own rows, and the summaries are merged along the one tree
over global rows. `simulator.py` plays the same pass event by event, with slow workers and failures.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import torch

from lloydformer.data.layout import leaf_rows

# Bytes of a number of a summary.
FLOAT64 = 8


@dataclass(frozen=True)
class Problem:
    """n points of d features in k clusters.

    itemsize: bytes of a number of the points, 4 for float32.
    """

    n_rows: int
    n_features: int
    n_clusters: int
    itemsize: int = 4

    @property
    def leaf(self) -> int:
        """Rows of a leaf of the tree, as all engines on the CPU have them."""
        return leaf_rows(torch.device("cpu"), self.n_features, self.n_clusters)

    @property
    def n_leaves(self) -> int:
        return -(-self.n_rows // self.leaf)

    @property
    def row_bytes(self) -> int:
        return self.itemsize * self.n_features


@dataclass(frozen=True)
class Pass:
    """One pass over all rows.

    Attributes
    ----------
    products : int
        Multiplications of each row with numbers of the centers.
    summary : int
        Bytes of a summary.
    broadcast : int
        Bytes that every worker must have before it begins.
    """

    products: int
    summary: int
    broadcast: int


def lloyd_pass(problem: Problem) -> Pass:
    """An iteration: sums (k, d), masses (k), numbers of points (k), and that of changed labels."""
    kd = problem.n_clusters * problem.n_features
    summary = FLOAT64 * (kd + 2 * problem.n_clusters + 1)
    return Pass(kd, summary, problem.itemsize * kd)


def plusplus_passes(problem: Problem) -> list[Pass]:
    """Greedy k-means++: for each further seed a pass with the seed, and one with its candidates."""
    d, candidates = problem.n_features, 2 + int(math.log(problem.n_clusters))
    one = Pass(d, FLOAT64, problem.itemsize * d)
    several = Pass(candidates * d, FLOAT64 * candidates, problem.itemsize * candidates * d)
    return [one, several] * (problem.n_clusters - 1)


def parallel_passes(problem: Problem, n_rounds: int = 5) -> list[Pass]:
    """k-means||: rounds that draw 2 k rows each, and a last one for the masses of all of them."""
    d, drawn = problem.n_features, 2 * problem.n_clusters
    first = Pass(d, FLOAT64 * (2 * drawn + 2), problem.itemsize * d)
    later = [
        Pass(drawn * d, FLOAT64 * (2 * drawn + 2 + done * drawn), problem.itemsize * drawn * d)
        for done in range(1, n_rounds + 1)
    ]
    return [first, *later]


@dataclass(frozen=True)
class Worker:
    """How fast a worker maps rows, in seconds.

    Attributes
    ----------
    per_row, per_number, per_product : float
        Seconds of a row, of each of its numbers, and of each product with a center's number.
    per_pass : float
        Seconds of a pass whatever its size.
    adding : float
        Bytes of summaries that are added in a second.
    memory : float
        Bytes of rows that it holds; beyond that all its rows are read from a disk in every pass.
    disk : float
        Bytes that the disk reads in a second.
    """

    per_row: float
    per_number: float
    per_product: float
    per_pass: float = 0.0
    adding: float = math.inf
    memory: float = math.inf
    disk: float = math.inf

    def seconds(self, problem: Problem, one: Pass, n_rows: int) -> float:
        """A pass over so many rows; rows are read from a disk while others are computed."""
        row = self.per_row + self.per_number * problem.n_features + self.per_product * one.products
        stored = n_rows * problem.row_bytes
        return self.per_pass + max(n_rows * row, stored / self.disk if stored > self.memory else 0)


@dataclass(frozen=True)
class Network:
    """A full-duplex network: every worker sends and receives one message at a time.

    Attributes
    ----------
    latency : float
        Seconds before the first byte of a message arrives.
    bandwidth : float
        Bytes in a second, in each direction.
    per_task : float
        Seconds in which a scheduler hands out one task; ranks have none.
    """

    latency: float
    bandwidth: float
    per_task: float = 0.0

    def seconds(self, n_bytes: float) -> float:
        """One message between two workers that are idle."""
        return self.latency + n_bytes / self.bandwidth


# -- the tree over leaves


def shares(n_leaves: int, n_workers: int) -> list[tuple[int, int]]:
    """Consecutive leaves [start, stop) of each worker, as even as whole leaves allow."""
    cuts = [n_leaves * worker // n_workers for worker in range(n_workers + 1)]
    return list(pairwise(cuts))


def subtrees(start: int, stop: int, n_leaves: int) -> int:
    """Number of complete subtrees that cover the leaves [start, stop), as few as possible.

    A subtree of level h begins at a multiple of 2^h; at the right end of all leaves it may lack
    some. At most about 2 log2(stop - start), and 1 if the shares are powers of two.
    """
    count = 0
    while start < stop:
        size = start & -start or 1 << n_leaves.bit_length()
        while start + size > stop and stop < n_leaves:
            size //= 2
        start += size
        count += 1
    return count


# -- closed forms, without slow workers and failures


def ring_seconds(n_workers: int, n_bytes: float, network: Network) -> float:
    """An all-gather around a ring, as gloo and NCCL do it: n - 1 steps of one block each."""
    return (n_workers - 1) * network.seconds(n_bytes)


def tree_seconds(depth: int, fan_in: int, n_bytes: float, network: Network) -> float:
    """Merging up a full tree of fan_in ** depth workers: a parent receives fan_in - 1 messages."""
    return depth * (network.latency + (fan_in - 1) * n_bytes / network.bandwidth)


def depth_of(n_workers: int, fan_in: int) -> int:
    """Levels of a tree with this fan-in."""
    depth, reached = 0, 1
    while reached < n_workers:
        reached *= fan_in
        depth += 1
    return depth


def slow_worker_factor(n_workers: int, share: float, factor: float) -> float:
    """Expected time of a pass in times of an even one, if a share of workers takes `factor`."""
    return 1 + (factor - 1) * (1 - (1 - share) ** n_workers)


def with_restarts(seconds: float, rate: float, restart: float) -> float:
    """Return the expected seconds of work that restarts after each failure.

    seconds: of the work without failures, between two checkpoints. rate: failures in a second, of
    all workers together. restart: seconds until the work begins again.
    """
    if rate == 0:
        return seconds
    return (1 / rate + restart) * math.expm1(rate * seconds)


def best_interval(checkpoint: float, rate: float) -> float:
    """Seconds between checkpoints that cost this much each, by Young's approximation."""
    return math.sqrt(2 * checkpoint / rate)
