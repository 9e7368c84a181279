"""Relocating k-means on every engine is the plain algorithm, draw for draw."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.algorithms import Relocating as Plain
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES, Chunked, Native, instruction_set
from lloydformer.estimators.base import Preparation
from lloydformer.estimators.initial_centers import InitialCenters
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.relocating import NoiseDraws, relocate, remove_cheapest_center
from lloydformer.solving.relocations import RelocationRun, Relocations
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitContext, HistoryRecorder

NATIVE = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
SETS = ("portable", "avx2", "avx512")
ENGINE = {"chunked": Chunked, "native": Native}
EACH = pytest.mark.parametrize("name", ["chunked", pytest.param("native", marks=NATIVE)])


def blobs(seed: int, n: int = 150, d: int = 3, k: int = 6, dtype=torch.float64, weighted=False):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) + 6 * rng.integers(0, 3, size=(n, d))
    weights = rng.uniform(0.2, 2, size=n) * (rng.random(n) < 0.9) if weighted else None
    return points.astype(str(dtype).removeprefix("torch.")), points[:k], weights


def run_plan(name: str, points, start, weights, how: Relocations, most: int, n_threads=1):
    """Return centers and objectives of all layers, in the coordinates of the points."""
    weights = None if weights is None else torch.from_numpy(weights)
    data = TensorBlocks(torch.from_numpy(points), weights, leaf=64)
    with ENGINE[name](n_threads).open(data) as session:
        fit = FitContext.create(MeansPlan(), session, Rules(most, 0.0, empty="keep"))
        start = torch.from_numpy(start).double() - data.origin
        run, recorder, path = (
            RelocationRun(how, fit, 0, start, whole=False),
            HistoryRecorder(fit, 0),
            [],
        )
        while not run.done:
            run.advance(recorder)
            path += [run.centers] * (len(recorder.history) - len(path))
    return [(centers + data.origin).numpy() for centers in path], recorder.history


@EACH
@given(
    st.integers(0, 10**6), st.integers(2, 9), st.integers(1, 6), st.booleans(),
    st.integers(1, 6), st.integers(1, 4), st.sampled_from([None, 0, 2]),
)  # fmt: skip
@settings(deadline=None, max_examples=12)
def test_it_is_the_plain_algorithm(name, seed, k, d, weighted, n_moved, n_draws, rest):
    points, start, weights = blobs(seed, d=d, k=k, weighted=weighted)
    how = {"n_moved": n_moved, "n_draws": n_draws, "rest": rest, "seed": seed}
    plain = Plain(**how).run(points, start, 40, weights)
    centers, objective = run_plan(name, points, start, weights, Relocations(**how), 40)
    assert len(centers) == len(plain.centers) - 1
    np.testing.assert_allclose(centers[-1], plain.centers[-1], atol=1e-9)
    np.testing.assert_allclose(objective, plain.objective[:-1], rtol=1e-9)


@EACH
def test_many_clusters_have_fewer_candidates(name):
    """More than 64 centers, of which only those of the least utility may vanish."""
    points, start, _ = blobs(3, n=400, d=2, k=70)
    plain = Plain(seed=2, rest=2).run(points, start, 12)
    centers, _ = run_plan(name, points, start, None, Relocations(seed=2, rest=2), 12)
    np.testing.assert_allclose(centers[-1], plain.centers[-1], atol=1e-9)
    assert plain.kept == (True,)


@EACH
@given(st.integers(0, 10**6), st.integers(1, 6), st.booleans(), st.sampled_from([0, 1]))
@settings(deadline=None, max_examples=12)
def test_starts_far_from_the_data(name, seed, k, weighted, rest):
    """No cluster can be split: all points are nearer to a drawn point than to the center."""
    points, start, weights = blobs(seed, n=40, d=2, k=k, weighted=weighted)
    how = {"rest": rest, "seed": seed}
    plain = Plain(**how).run(points, start + 1000, 60, weights)
    centers, objective = run_plan(name, points, start + 1000, weights, Relocations(**how), 60)
    np.testing.assert_allclose(centers[-1], plain.centers[-1], atol=1e-9)
    np.testing.assert_allclose(objective, plain.objective[:-1], rtol=1e-9)


@EACH
def test_a_relocation_that_splits_nothing_is_a_step_of_lloyds(name):
    points, start = np.array([[0.0], [1], [10], [11], [20], [21]]), np.array([[50.0], [60], [70]])
    data = TensorBlocks(torch.from_numpy(points))
    with ENGINE[name](1).open(data) as session:
        found = relocate(session, torch.from_numpy(start) - data.origin, 3, NoiseDraws(0, 0, 3))
    assert (found.centers + data.origin).flatten().tolist() == [10.5, 60, 70]
    assert found.after == pytest.approx(401.5)
    model = lf.RelocatingKMeans(
        3, init=start, search_options={"n_iter_between": 0}, random_state=0, engine=name
    ).fit(points)
    assert model.inertia_ == pytest.approx(1.5)


@EACH
def test_several_starts_draw_anew(name):
    points, start, _ = blobs(5, k=8)
    one, other = (
        run_plan(name, points, start, None, Relocations(seed=s, rest=2), 20)[0][-1] for s in (1, 2)
    )
    again = run_plan(name, points, start, None, Relocations(seed=1, rest=2), 20)[0][-1]
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


@NATIVE
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_threads_do_not_change_a_bit(dtype, weighted):
    points, start, weights = blobs(7, n=70_000, d=4, k=9, dtype=dtype, weighted=weighted)
    runs = [
        run_plan("native", points, start, weights, Relocations(seed=1), 30, n_threads)
        for n_threads in (1, 2, 3)
    ]
    for centers, objective in runs[1:]:
        assert objective == runs[0][1]
        assert all((a == b).all() for a, b in zip(centers, runs[0][0], strict=True))


@NATIVE
@pytest.mark.parametrize("isa", SETS)
def test_every_instruction_set_relocates_alike(isa, monkeypatch):
    if SETS.index(isa) > SETS.index(instruction_set()):
        pytest.skip(f"this machine does not have {isa}")
    monkeypatch.setitem(ENGINE, "native", lambda n_threads: Native(1, instruction_set=isa))
    points, start, weights = blobs(11, weighted=True)
    plain = Plain(seed=4).run(points, start, 40, weights)
    centers, _ = run_plan("native", points, start, weights, Relocations(seed=4), 40)
    np.testing.assert_allclose(centers[-1], plain.centers[-1], atol=1e-9)


@EACH
def test_single_precision_ends_as_well(name):
    """Draws are the same; rounding may change which relocations are kept, not how good it gets."""
    points, start, _ = blobs(13, n=600, d=5, k=10)
    exact = run_plan(name, points, start, None, Relocations(seed=1), 400)[1][-1]
    single = run_plan(name, points.astype(np.float32), start, None, Relocations(seed=1), 400)[1][-1]
    assert single == pytest.approx(exact, rel=0.01)


def test_pruning_removes_the_center_of_least_cost():
    """The center that vanishes is the one without which the partition is best, by brute force."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(80, 2))
    data = TensorBlocks(torch.from_numpy(points), leaf=32)
    centers = data.take(torch.arange(7)).double()
    with Chunked(1).open(data) as session:
        left = remove_cheapest_center(session, centers)
    seen = points - data.origin.numpy()
    away = ((seen[:, None] - centers.numpy()) ** 2).sum(axis=2)
    order, best = away.argsort(axis=1), (np.inf, None)
    for a in range(7):
        labels = np.where(order[:, 0] == a, order[:, 1], order[:, 0])
        means = [seen[labels == j].mean(axis=0) for j in range(7) if j != a]
        spread = sum(
            ((seen[labels == j] - m) ** 2).sum()
            for j, m in zip([j for j in range(7) if j != a], means, strict=True)
        )
        best = min(best, (spread, np.stack(means).tolist()))
    np.testing.assert_allclose(left.numpy(), best[1], atol=1e-12)


def test_both_engines_are_registered():
    assert {"chunked", "native"} <= set(ENGINES)


def test_the_seed_of_the_noise_is_drawn_from_the_random_state():
    data, model = TensorBlocks(torch.zeros(3, 1).double()), lf.RelocatingKMeans(2)
    with Chunked(1).open(data) as session:
        rng = np.random.RandomState(5)
        initial = InitialCenters(model, None, data.layout, rng)
        _, _, algorithm = model._prepare(Preparation(initial, data, session, rng))
    assert algorithm.seed == np.random.RandomState(5).randint(2**31 - 1)
    assert algorithm == replace(Relocations(), seed=algorithm.seed)
