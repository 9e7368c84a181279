"""The rules by hand, for a batch; and the kernels' copy of them against the loop in Python."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines import ENGINES, Native, instruction_set
from lloydformer.plans.assign import FarthestPoints
from lloydformer.plans.contract import Sums
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.batch.by_kernels import ByKernels
from lloydformer.solving.batch.by_tensors import ByTensors
from lloydformer.solving.iterations import PlanRun
from lloydformer.solving.rules import Rules, fill_empty, is_better, is_settled, same_labelling
from lloydformer.solving.run import FitContext, HistoryRecorder

NATIVE = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)


@pytest.mark.parametrize(
    ("stops_on", "expected"),
    [
        ("labels", [True, True, False, True]),
        ("shift", [False, True, False, True]),
        ("never", [False] * 4),
    ],
)
@pytest.mark.parametrize("kind", [np.array, torch.tensor])
def test_settled(stops_on, expected, kind):
    """Labels stay but centers move; both; neither; the shift is exactly the tolerance."""
    changed, shift = kind([0, 3, 3, 3]), kind([5.0, 0.5, 5.0, 1.0])
    assert is_settled(stops_on, changed, shift, kind([1.0] * 4)).tolist() == expected


def test_only_a_lower_inertia_is_better():
    found = is_better(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0]))
    assert found.tolist() == [True, False, False]


def far(distances, points, labels, weights) -> FarthestPoints:
    rows = torch.arange(len(distances[0])).expand(len(distances), -1)
    given = (torch.tensor(t, dtype=torch.float64) for t in (distances, points, weights))
    away, at, weight = given
    return FarthestPoints(away, rows, torch.tensor(labels), at.unsqueeze(-1), weight)


def filled(empties: str):
    """Two problems on the line: one with two empty clusters and one point to spare, one with none.

    In the first, cluster 0 has the points 0, 1, 9 (weights 1, 1, 2); 9 is farthest, then nothing.
    """
    update = Sums(
        torch.tensor([[[19.0], [0.0], [0.0]], [[3.0], [4.0], [5.0]]]).double(),
        torch.tensor([[4.0, 0.0, 0.0], [1.0, 1.0, 1.0]]).double(),
    )
    points = far([[16.0, 0.0], [4.0, 1.0]], [[9.0, 1.0], [7.0, 8.0]], [[0, 0], [1, 2]],
                 [[2.0, 1.0], [1.0, 1.0]])  # fmt: skip
    done = fill_empty(update, points, empties)
    return done.sums.squeeze(-1).tolist(), done.masses.tolist()


def test_the_farthest_point_fills_an_empty_cluster_and_leaves_its_own():
    sums, masses = filled("move")
    assert (sums[0], masses[0]) == ([1.0, 18.0, 0.0], [2.0, 2.0, 0.0])
    assert (sums[1], masses[1]) == ([3.0, 4.0, 5.0], [1.0, 1.0, 1.0])


def test_a_copied_point_stays_in_its_own_cluster():
    sums, masses = filled("copy")
    assert (sums[0], masses[0]) == ([19.0, 18.0, 0.0], [4.0, 2.0, 0.0])


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [([0, 0, 1], [1, 1, 0], True), ([0, 0, 1], [0, 1, 1], False), ([0, 0, 0], [0, 0, 1], False)],
)
def test_labellings_up_to_the_numbers_of_the_clusters(one, other, equal):
    labellings = [(torch.tensor(labels), None) for labels in (one, other)]
    assert same_labelling(*labellings, n_clusters=2) is equal


def test_labellings_differ_by_what_is_trimmed():
    labels, mask = torch.tensor([0, 0, 1]), torch.tensor([False, True, False])
    assert same_labelling((labels, mask), (1 - labels, mask), 2)
    assert not same_labelling((labels, mask), (labels, mask.roll(1)), 2)


whole = st.integers(-4, 4)


@st.composite
def problems(draw):
    """Points on a grid with whole weights: full of ties, duplicates and empty clusters."""
    n, d, k = draw(st.integers(3, 24)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    k = min(k, n)
    points = rng.integers(-4, 5, size=(n, d)).astype(float)
    weights = rng.integers(0, 3, size=n).astype(float) if draw(st.booleans()) else None
    if weights is not None:
        weights[:k] = np.maximum(weights[:k], 1)
    centers = rng.integers(-8, 9, size=(k, d)).astype(float)
    return points, weights, centers, draw(st.integers(1, 12)), draw(st.sampled_from([0.0, 0.05]))


def loop_of(engine, points, weights, centers, rules, callback=None):
    """Centers, history and labels; with a callback step by step, by the rules in Python."""
    weights = None if weights is None else torch.from_numpy(weights)
    if sparse.issparse(points):
        data = SparseBlocks(points, weights, leaf=5)
    else:
        data = TensorBlocks(torch.from_numpy(points), weights, leaf=5)
    with engine.open(data) as session:
        fit = FitContext.create(MeansPlan(), session, rules, watched=callback is not None)
        run = PlanRun(fit, 0, data.layout.to_row_units(torch.from_numpy(centers)))
        recorder = HistoryRecorder(fit, 0, callback)
        while not run.done:
            run.advance(recorder)
        outcome = run.finish(recorder.history)
        return data.layout.to_data_units(outcome.centers).numpy(), outcome.history, session.labels()


@given(problems())
def test_every_engine_follows_the_rules(problem):
    """Step by step on each engine: the same centers, iterations and labels."""
    points, weights, centers, max_iter, tol = problem
    rules, heard = Rules(max_iter, tol), []
    left_out = {"cuda"} | ({"native"} if instruction_set() is None else set())
    names = [name for name in ENGINES if name not in left_out]
    one, *others = (
        loop_of(ENGINES[name](), points, weights, centers, rules, heard.append) for name in names
    )
    for other in others:
        np.testing.assert_allclose(other[0], one[0], atol=1e-12)
        np.testing.assert_allclose(other[1], one[1], atol=1e-9)
        assert torch.equal(other[2], one[2])


@NATIVE
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
@settings(max_examples=100)
@given(problem=problems())
def test_the_kernel_of_whole_loops_follows_the_rules(kind, problem):
    """`Iterations` in one call against the loop in Python, on the same engine."""
    points, weights, centers, max_iter, tol = problem
    points, rules, heard = kind(points), Rules(max_iter, tol), []
    at_once = loop_of(Native(1), points, weights, centers, rules)
    by_steps = loop_of(Native(1), points, weights, centers, rules, heard.append)
    assert len(heard) == len(by_steps[1]) - 1
    np.testing.assert_allclose(at_once[0], by_steps[0], atol=1e-12)
    np.testing.assert_allclose(at_once[1], by_steps[1], atol=1e-9)
    assert torch.equal(at_once[2], by_steps[2])


@NATIVE
@settings(max_examples=100)
@given(problems(), problems())
def test_the_kernel_of_batches_follows_the_rules(one, other):
    """`fit_batch` by kernels and by tensors, which uses the loop in Python."""
    points, weights, centers, max_iter, tol = one
    rng = np.random.default_rng(len(other[0]))
    batch = np.stack([points, rng.permutation(points), points + rng.integers(0, 2, points.shape)])
    x, starts = torch.from_numpy(batch), torch.from_numpy(np.stack([centers, centers, centers + 1]))
    ones = np.ones(len(points)) if weights is None else weights
    w = torch.from_numpy(np.stack([ones, ones[::-1].copy(), ones]))
    rules, draw = Rules(max_iter, tol), np.random.RandomState(0)
    plan = MeansPlan()
    fast = ByKernels(plan, x, w, rules, draw).from_array(starts)
    plain = ByTensors(plan, x, w, rules, draw, torch.zeros(3).long()).from_array(starts)
    np.testing.assert_array_equal(fast.n_iter, plain.n_iter)
    np.testing.assert_allclose(fast.centers, plain.centers, atol=1e-12)
    np.testing.assert_allclose(fast.inertia, plain.inertia, atol=1e-9)


def test_problems_with_empty_clusters_and_ties_occur():
    """The strategy reaches what it is for: clusters are refilled in many of its problems."""
    refilled = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        points, k = rng.integers(-4, 5, size=(12, 2)).astype(float), 5
        centers = rng.integers(-8, 9, size=(k, 2)).astype(float)
        labels = ((points[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        refilled += len(set(labels)) < k
    assert refilled > 100


def test_a_fit_is_a_batch_of_one(rng):
    """`KMeans` on the loop in Python, and `fit_batch` of the same problem alone."""
    X = rng.normal(size=(60, 3))
    init = X[:4]
    heard = []
    model = lf.KMeans(4, init=init, engine="chunked", callback=heard.append, tol=0.0).fit(X)
    batch = lf.fit_batch(X[None], 4, init=init[None], tol=0.0)
    np.testing.assert_allclose(batch.centers[0], model.cluster_centers_, atol=1e-9)
    assert batch.n_iter[0] == model.n_iter_ == len(heard)


@pytest.mark.parametrize("kind", [lf.SoftKMeans, lf.RobustKMeans])
def test_a_shift_of_exactly_the_tolerance_ends_it(kind, engine):
    """Equal points have no variance, so the tolerance is 0, and a center among them stays."""
    X = np.ones((6, 2))
    assert kind(1, init=X[:1], max_iter=7, engine=engine).fit(X).n_iter_ == 1
