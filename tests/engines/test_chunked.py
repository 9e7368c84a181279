"""The chunked engine: threads change no bit, blocks only rounding; torch keeps its threads."""

from dataclasses import dataclass
from functools import cache
from time import sleep

import numpy as np
import pytest
import torch

from lloydformer import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.plans.contract import FinalAssignment, apply_update
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
    "medoids": lower(recipes.medoids(1.0)).with_seed(5),
}
STEPS = 4


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def dtype(request):
    return request.param


@pytest.fixture(params=PLANS)
def plan(request):
    return request.param


def problem(dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """2,000 points with weights: in leaves of 64 these are four groups of leaves."""
    generator = torch.Generator().manual_seed(3)
    points = torch.randn(2000, 3, generator=generator, dtype=torch.float64) + 1
    return points.to(dtype), torch.rand(2000, generator=generator, dtype=torch.float64) + 0.5


@dataclass(frozen=True)
class Ended:
    """Centers after a few steps, and the last assignment."""

    centers: torch.Tensor
    labels: torch.Tensor
    trimmed: torch.Tensor | None
    final: FinalAssignment

    def same_points(self, other: "Ended") -> bool:
        """The same labels, and the same trimmed points."""
        if self.trimmed is None or other.trimmed is None:
            masks = self.trimmed is other.trimmed
        else:
            masks = torch.equal(self.trimmed, other.trimmed)
        return masks and torch.equal(self.labels, other.labels)


def iterated(name, dtype, n_threads=1, leaf=64) -> Ended:
    points, weights = problem(dtype)
    plan = PLANS[name]
    data = TensorBlocks(points, weights, leaf, directions=plan.directions)
    with Chunked(n_threads).open(data) as session:
        centers = data.take(torch.arange(5)).double()
        for iteration in range(STEPS):
            step = plan.step(session, centers.to(dtype), iteration)
            centers = apply_update(step.update, centers, plan.directions)
        final = plan.finish(session, centers.to(dtype))
        return Ended(centers, session.labels(), session.trimmed(), final)


@cache
def with_one_thread(name, dtype) -> Ended:
    return iterated(name, dtype)


@pytest.mark.parametrize("n_threads", [pytest.param(2, marks=pytest.mark.long), 3])
def test_threads_do_not_change_a_bit(plan, dtype, n_threads):
    alone, together = with_one_thread(plan, dtype), iterated(plan, dtype, n_threads)
    assert torch.equal(alone.centers, together.centers)
    assert alone.same_points(together)
    assert alone.final == together.final


def test_the_number_of_torchs_threads_does_not_change_a_bit(plan, dtype):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        found = iterated(plan, dtype, None)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(with_one_thread(plan, dtype).centers, found.centers)


def test_blocks_change_results_by_rounding_only(plan):
    small = with_one_thread(plan, torch.float64)
    for leaf in (100, 333, 5000):
        large = iterated(plan, torch.float64, leaf=leaf)
        torch.testing.assert_close(small.centers, large.centers, rtol=1e-12, atol=1e-12)
        assert small.same_points(large)
        assert small.final.inertia == pytest.approx(large.final.inertia, rel=1e-12)


def test_seeds_do_not_depend_on_threads_or_blocks():
    points, weights = problem()
    drawn = []
    for n_threads, leaf in ((1, 64), (3, 64), (2, 100), (1, 5000)):
        data = TensorBlocks(points, weights, leaf)
        with Chunked(n_threads).open(data) as session:
            drawn.append(kmeans_plusplus(session, 8, np.random.RandomState(0)).tolist())
    assert all(rows == drawn[0] for rows in drawn)


class TorchThreads:
    """How many threads torch uses while blocks are mapped."""

    def map(self, block):
        return {torch.get_num_threads()}

    def merge(self, first, second):
        return first | second


def fail(data, n_threads):
    with Chunked(n_threads).open(data) as session:
        assert session.fold(TorchThreads()) == {1}
        assert torch.get_num_threads() == 2
        raise ZeroDivisionError


@pytest.mark.parametrize("n_threads", [1, 3])
def test_torch_keeps_its_threads_during_a_session_and_after_an_error(n_threads):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(ZeroDivisionError):
            fail(TensorBlocks(problem()[0], leaf=64), n_threads)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


class Failing:
    """A fold that raises in a late block."""

    def map(self, block):
        if block.start >= 1000:
            raise ArithmeticError(block.start)
        return 1

    def merge(self, first, second):
        return first + second


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_block_is_raised(n_threads):
    data = TensorBlocks(problem()[0], leaf=64)
    with (
        pytest.raises(ArithmeticError, match="1024"),
        Chunked(n_threads).open(data) as session,
    ):
        session.fold(Failing())


class SlowBlocks(Failing):
    """Remembers labels, slowly; raises in the first block, or in the first merge."""

    def __init__(self, fails_in):
        self.fails_in = fails_in

    def map(self, block):
        if self.fails_in == "map" and block.start == 0:
            raise ArithmeticError
        if block.start > 0:
            sleep(0.02)
        block.previous.fill_(7)
        return 1

    def merge(self, first, second):
        raise ArithmeticError


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("fails_in", ["map", "merge"])
def test_an_error_forgets_the_labels_of_all_blocks(n_threads, fails_in):
    data = TensorBlocks(problem()[0][:640], leaf=64)
    with Chunked(n_threads).open(data) as session:
        with pytest.raises(ArithmeticError):
            session.fold(SlowBlocks(fails_in))
        sleep(0.1)  # no thread still works on a block
        assert not (session.state.column("previous") == 7).any()


class FirstRows(Failing):
    """Every block's first row, in the order of merging."""

    def map(self, block):
        return [block.start]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_summaries_are_merged_in_row_order(n_threads):
    data = TensorBlocks(problem()[0], leaf=64)
    with Chunked(n_threads).open(data) as session:
        assert session.fold(FirstRows()) == list(range(0, 2000, 64))


def test_a_fold_over_the_state_alone_reads_no_points(monkeypatch):
    """Trimming takes two passes over the data, whatever the number of its folds."""
    data, read = TensorBlocks(problem()[0], leaf=500), []
    plain = TensorBlocks.read
    monkeypatch.setattr(
        TensorBlocks, "read", lambda self, *rows: read.append(rows) or plain(self, *rows)
    )
    with Chunked(1).open(data) as session:
        PLANS["trimmed"].step(session, data.take(torch.arange(5)), 0)
    assert len(read) == 2 * 4
