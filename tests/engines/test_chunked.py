"""The chunked engine: threads do not change a bit, blocks hardly, and torch is left as it was."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lloydformer import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import State
from lloydformer.plans.lower import lower
from lloydformer.solving.seeding import kmeans_plusplus

PLANS = {
    "means": lower(recipes.lloyd()),
    "directions": lower(recipes.spherical()),
    "soft": lower(recipes.soft(0.5)),
    "trimmed": lower(recipes.trimmed(0.8)),
    "robust": lower(recipes.robust(0.02)),
    "softmax": lower(recipes.robust(0.5, "softmax")),
    "top": lower(recipes.robust(0.5, TopK(9))),
    "medoids": replace(lower(recipes.medoids(1.0)), seed=5),
}
STEPS = 4


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=PLANS)
def plan(request):
    return PLANS[request.param]


def problem(dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """2,000 points with weights: in leaves of 64 these are four groups of leaves."""
    generator = torch.Generator().manual_seed(3)
    points = torch.randn(2000, 3, generator=generator, dtype=torch.float64) + 1
    return points.to(dtype), torch.rand(2000, generator=generator, dtype=torch.float64) + 0.5


def iterated(plan, dtype, n_threads=1, leaf=64):
    """Centers after a few steps, labels, and what the last assignment comes to."""
    points, weights = problem(dtype)
    data = TensorBlocks(points, weights, leaf, directions=plan.directions)
    state = State.of(data)
    state.clear()
    with Chunked(n_threads).over(data, state) as run:
        centers = data.take(torch.arange(5)).double()
        for iteration in range(STEPS):
            centers = plan.place(plan.step(run, centers.to(dtype), iteration), centers)
        final = plan.finish(run, centers.to(dtype))
    return centers, state.labels.clone(), final


@pytest.mark.parametrize("n_threads", [2, 3])
def test_threads_do_not_change_a_bit(plan, dtype, n_threads):
    centers, labels, final = iterated(plan, dtype)
    again = iterated(plan, dtype, n_threads)
    assert torch.equal(centers, again[0])
    assert torch.equal(labels, again[1])
    assert final == again[2]


def test_torchs_own_threads_do_not_either(plan, dtype):
    centers, *_ = iterated(plan, dtype, None)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(centers, iterated(plan, dtype, None)[0])
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("leaf", [100, 333, 5000])
def test_blocks_hardly_change_anything(plan, leaf):
    centers, labels, final = iterated(plan, torch.float64)
    again = iterated(plan, torch.float64, leaf=leaf)
    torch.testing.assert_close(centers, again[0], rtol=1e-12, atol=1e-12)
    assert torch.equal(labels, again[1])
    assert final.inertia == pytest.approx(again[2].inertia, rel=1e-12)


def test_seeds_do_not_depend_on_threads_or_blocks():
    points, weights = problem()
    drawn = []
    for n_threads, leaf in ((1, 64), (3, 64), (2, 100), (1, 5000)):
        data = TensorBlocks(points, weights, leaf)
        state = State.of(data)
        with Chunked(n_threads).over(data, state) as run:
            rng = np.random.RandomState(0)
            drawn.append(kmeans_plusplus(data, run, state.distances, 8, rng).tolist())
    assert all(rows == drawn[0] for rows in drawn)


def fail(data, n_threads):
    with Chunked(n_threads).over(data, State.of(data)):
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError


@pytest.mark.parametrize("n_threads", [1, 3])
def test_torchs_threads_are_as_before_also_after_an_error(n_threads):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(ZeroDivisionError):
            fail(TensorBlocks(problem()[0], leaf=64), n_threads)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


class Failing:
    """A fold that meets an error in a late block."""

    def map(self, block):
        if block.start >= 1000:
            raise ArithmeticError(block.start)
        return 1

    def merge(self, first, second):
        return first + second


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_block_comes_out(n_threads):
    data = TensorBlocks(problem()[0], leaf=64)
    with (
        pytest.raises(ArithmeticError, match="1024"),
        Chunked(n_threads).over(data, State.of(data)) as run,
    ):
        run(Failing())


class Rows(Failing):
    """Every block's first row, in the order of merging."""

    def map(self, block):
        return [block.start]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_summaries_are_merged_in_row_order(n_threads):
    data = TensorBlocks(problem()[0], leaf=64)
    with Chunked(n_threads).over(data, State.of(data)) as run:
        assert run(Rows()) == list(range(0, 2000, 64))


def test_a_fold_over_the_state_alone_reads_no_points(monkeypatch):
    """Trimming takes two passes over the data, whatever the number of its folds."""
    data, read = TensorBlocks(problem()[0], leaf=500), []
    plain = TensorBlocks.read
    monkeypatch.setattr(
        TensorBlocks, "read", lambda self, *rows: read.append(rows) or plain(self, *rows)
    )
    with Chunked(1).over(data, State.of(data)) as run:
        PLANS["trimmed"].step(run, data.take(torch.arange(5)), 0)
    assert len(read) == 2 * 4
