"""The cost of a pass: counts that are worked out by hand, and the same counts from the engines."""

import math

import numpy as np
import pytest
import torch
from cost_model import (
    Network,
    Pass,
    Problem,
    Worker,
    best_interval,
    depth_of,
    lloyd_pass,
    parallel_passes,
    plusplus_passes,
    ring_seconds,
    shares,
    slow_worker_factor,
    subtrees,
    tree_seconds,
    with_restarts,
)

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.partitioned import PartitionRows, PartitionSpec, PartitionStore
from lloydformer.engines.partitioned.requests import FoldRequest
from lloydformer.engines.ranks.group import dump_data
from lloydformer.engines.ranks.transport import place_on_ranks
from lloydformer.plans.assign import NearestSums


def test_bytes_of_an_iteration():
    problem = Problem(1_000_000, 16, 64)
    one = lloyd_pass(problem)
    assert (one.products, one.summary, one.broadcast) == (1024, 8 * (1024 + 128 + 1), 4096)
    assert (problem.leaf, problem.n_leaves, problem.row_bytes) == (8192, 123, 64)


@pytest.mark.parametrize("n_rows", [3 * 8192, 13 * 8192 - 77, 40_000])
def test_the_bytes_of_an_iteration_are_those_that_ranks_send(n_rows):
    problem = Problem(n_rows, 4, 32)
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(n_rows, 4)).astype(np.float32))
    blocks = TensorBlocks(X, leaf=problem.leaf)
    spec = PartitionSpec.for_blocks(blocks, "native", single=False)
    lengths = [n_rows // 3, n_rows - n_rows // 3]
    placements = place_on_ranks(lengths, problem.leaf, single=False)
    for rank in (0, 1):
        store = PartitionStore(spec, 1, n_rows)
        here = [each.range for each in placements if each.rank == rank]
        for number, cut in enumerate(here):
            rows = PartitionRows(cut.start, X[cut.start : cut.stop])
            store.partitions[number] = store.open(rows)
        answer = store.handle(FoldRequest(fold=NearestSums(X[:32].contiguous()), version=0))
        store.close()
        start, stop = here[0].start // problem.leaf, -(-here[-1].stop // problem.leaf)
        count = subtrees(start, stop, problem.n_leaves)
        expected = count * lloyd_pass(problem).summary
        assert expected <= len(dump_data(answer)) <= expected + 400 * count + 300


def test_leaves_are_shared_evenly_and_all_of_them():
    assert shares(7, 3) == [(0, 2), (2, 4), (4, 7)]
    assert shares(2, 3) == [(0, 0), (0, 1), (1, 2)]  # more workers than leaves: some are empty


@pytest.mark.parametrize(
    ("start", "stop", "n_leaves", "count"),
    [
        (0, 8, 8, 1),  # all
        (0, 5, 5, 1),  # all, the right half incomplete
        (4, 5, 5, 1),
        (0, 3, 8, 2),  # [0, 2) and [2, 3)
        (1, 7, 8, 4),  # [1, 2), [2, 4), [4, 6), [6, 7)
        (3, 7, 7, 2),  # [3, 4) and [4, 8), which ends at 7
        (5, 5, 8, 0),
    ],
)
def test_subtrees_by_hand(start, stop, n_leaves, count):
    assert subtrees(start, stop, n_leaves) == count


def plain_subtrees(start, stop, n_leaves):
    """By trying all nodes, from the root down."""

    def cover(first, size):
        if first >= min(stop, n_leaves) or first + size <= start:
            return 0
        if first >= start and (first + size <= stop or stop == n_leaves):
            return 1
        return cover(first, size // 2) + cover(first + size // 2, size // 2)

    return cover(0, 1 << (n_leaves - 1).bit_length())


def test_subtrees_are_as_few_as_a_search_of_the_whole_tree_finds():
    for n_leaves in (1, 2, 3, 7, 8, 13, 32, 33):
        for start in range(n_leaves):
            for stop in range(start + 1, n_leaves + 1):
                found = subtrees(start, stop, n_leaves)
                assert found == plain_subtrees(start, stop, n_leaves), (start, stop, n_leaves)


def test_the_seconds_of_a_worker():
    problem, one = Problem(100, 2, 3), Pass(products=6, summary=0, broadcast=0)
    worker = Worker(per_row=1.0, per_number=10.0, per_product=100.0, per_pass=5.0)
    assert worker.seconds(problem, one, 2) == 5 + 2 * (1 + 20 + 600)
    slow_disk = Worker(1.0, 0.0, 0.0, memory=16, disk=1.0)
    assert slow_disk.seconds(problem, one, 2) == 2  # 16 bytes fit
    assert slow_disk.seconds(problem, one, 3) == 24  # all 24 bytes are read


def test_passes_of_the_seedings():
    problem = Problem(1000, 4, 10)
    assert len(plusplus_passes(problem)) == 2 * 9
    assert plusplus_passes(problem)[1].products == 4 * 4  # 2 + int(log 10) candidates
    assert len(parallel_passes(problem)) == 6
    assert sum(one.products for one in parallel_passes(problem)) == 4 * (1 + 5 * 20)


def test_networks_by_hand():
    network = Network(latency=1.0, bandwidth=10.0)
    assert ring_seconds(4, 20, network) == 3 * (1 + 2)
    assert tree_seconds(2, 4, 20, network) == 2 * (1 + 3 * 2)
    assert ring_seconds(1, 20, network) == tree_seconds(0, 4, 20, network) == 0
    assert [depth_of(n, 4) for n in (1, 2, 4, 5, 16, 17)] == [0, 1, 1, 2, 2, 3]


def test_slow_workers_and_restarts_against_random_numbers():
    random = np.random.default_rng(0)
    slow = (random.random((20_000, 30)) < 0.02).any(axis=1)
    assert slow_worker_factor(30, 0.02, 3.0) == pytest.approx(1 + 2 * slow.mean(), rel=0.02)
    took = []
    for _ in range(20_000):
        total, fails = 0.0, random.exponential(1 / 0.1)
        while fails < 5.0:
            total += fails + 2.0
            fails = random.exponential(1 / 0.1)
        took.append(total + 5.0)
    assert with_restarts(5.0, 0.1, 2.0) == pytest.approx(np.mean(took), rel=0.02)
    assert with_restarts(5.0, 0.0, 2.0) == 5.0


def test_the_interval_between_checkpoints_is_near_the_best():
    def overhead(interval):
        return with_restarts(interval + 2.0, 1e-4, 0.0) / interval

    young = best_interval(2.0, 1e-4)
    best = min(overhead(seconds) for seconds in np.geomspace(20, 2000, 400))
    assert young == pytest.approx(200.0)
    assert overhead(young) <= 1.001 * best
    assert math.isfinite(young)
