"""The chunked engine: threads change no bit, blocks only rounding; torch keeps its threads."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from time import sleep

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.plans.assign import Moments, NearestSums
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


# rows far from the origin, or on a line


def make_constant(rng):
    points = rng.normal(size=(150, 3)) * 10.0 ** rng.integers(-3, 4)
    points[:, rng.integers(3)] = 10.0 ** rng.integers(0, 8)
    return points


def make_collinear(rng):
    scales, shifts = 10.0 ** rng.integers(-3, 4, size=3), 10.0 ** rng.integers(0, 5, size=3)
    return rng.normal(size=(150, 1)) * rng.normal(size=3) * scales + rng.normal(size=3) * shifts


def make_groups(rng):
    """Groups that are far from each other: the origin is in one of them."""
    groups = rng.normal(size=(3, 3)) * 10.0 ** rng.integers(1, 5)
    return groups[rng.integers(3, size=150)] + rng.normal(size=(150, 3))


def make_far(rng):
    points = rng.normal(size=(150, 3)) * 10.0 ** rng.integers(-3, 4)
    points[rng.integers(150)] *= 10.0 ** rng.integers(2, 8)
    return points


MAKE = {
    "constant": make_constant,
    "collinear": make_collinear,
    "groups": make_groups,
    "far": make_far,
}


def exact_squares(row, centers):
    """Squared distances as fractions, without rounding."""
    return [
        sum(
            (Fraction(float(a)) - Fraction(float(b))) ** 2 for a, b in zip(row, center, strict=True)
        )
        for center in centers
    ]


def check_nearest(rows, centers, labels):
    for row, label in zip(rows, labels, strict=True):
        squares = exact_squares(row, centers)
        # Both squares are rounded in float64.
        assert squares[label] <= min(squares) * (1 + Fraction(1, 10**14))


def lost_by_rounding(model, points, dtype):
    """How much the objective may grow by rounding: of returned centers, of rows less the origin.

    And that of sums in float64, from which the sum of all squares is taken away.
    """
    middle = np.median(points.astype(float), axis=0)
    norms = np.square(points - middle).sum()
    masses = np.bincount(model.labels_, minlength=len(model.cluster_centers_))
    moved = np.spacing(abs(model.cluster_centers_)).astype(float) / 2
    moved_rows = np.spacing(abs(points - middle).astype(dtype)).astype(float) / 2
    cost = (masses[:, None] * np.square(moved)).sum() + np.square(moved_rows).sum()
    return 1e-14 * norms, cost + 2 * np.sqrt(np.square(moved_rows).sum() * model.inertia_)


@pytest.mark.parametrize("kind", MAKE)
def test_the_objective_does_not_rise(kind, dtype):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points = MAKE[kind](rng).astype(str(dtype).removeprefix("torch."))
        init = points[rng.choice(len(points), 5, replace=False)]
        model = lf.KMeans(5, init=init, tol=0, engine="chunked").fit(points)
        history = model.objective_history_
        sums, last = lost_by_rounding(model, points, points.dtype)
        rises = np.diff(history) - 1e-6 * history[:-1] - sums
        rises[-1:] -= last  # centers are returned in the precision of the data
        assert (rises <= 0).all(), (seed, history)


@pytest.mark.parametrize("kind", MAKE)
def test_labels_within_iterations_are_those_of_the_nearest_centers(kind, dtype):
    """Products alone are rounded by more than the differences within a group that is far away."""
    for seed in range(4):
        points = torch.from_numpy(MAKE[kind](np.random.default_rng(seed))).to(dtype)
        data = TensorBlocks(points, leaf=64)
        centers = data.take(torch.arange(6)) + 0.25
        with Chunked(1).open(data) as session:
            session.fold(NearestSums(centers))
            labels = session.labels()
        rows = data.take(torch.arange(len(points)))
        check_nearest(rows.numpy(), centers.numpy(), labels.tolist())


def test_ties_go_to_the_first_center(dtype):
    points = torch.tensor([[1.0], [3.0], [2.0]], dtype=dtype) + 4096
    data = TensorBlocks(points, given_origin=torch.zeros(1, dtype=dtype))
    with Chunked(1).open(data) as session:
        session.fold(NearestSums(points[:2]))
        assert session.labels().tolist() == [0, 1, 0]


@pytest.mark.parametrize("far", [5e19, 1e40, 1e100])
def test_an_outlier_far_away_costs_no_label(far):
    """Less an origin that such a row moves, all other rows would be the same number."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(30, 3))
        points[rng.integers(30, size=2)] = rng.normal(size=(2, 3)) * far
        model = lf.KMeans(4, tol=0, random_state=seed, engine="chunked").fit(points)
        for labels in (model.labels_, model.predict(points)):
            check_nearest(points, model.cluster_centers_, labels)


def test_the_sum_of_squares_is_added_up_in_float64():
    points = torch.tensor([[4097.0, 1.0], [8193.0, 0.0]], dtype=torch.float32)
    data = TensorBlocks(points, given_origin=torch.zeros(2))
    with Chunked(1).open(data) as session:
        assert session.fold(Moments())[0].item() == 4097**2 + 1 + 8193**2
