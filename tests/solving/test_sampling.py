"""Large data: the pool works on a sample, and its best solution is a start of its own."""

import itertools

import numpy as np
import pytest
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import choose
from lloydformer.plans.seeding import RowsByWeight
from lloydformer.solving import sampling


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(sampling, "FEWEST_ROWS", 400)
    monkeypatch.setattr(sampling, "LARGE", 1000)


def blobs(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    grid = 10.0 * np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2)
    return grid[np.arange(n) % 16] + rng.normal(size=(n, 2))


def test_samples_are_for_large_data_only():
    layout = TensorBlocks(torch.zeros(100_000, 64)).layout
    assert sampling.sample_rows(layout, 1000) == 20_000
    assert sampling.sample_rows(layout, 10) is None
    assert sampling.sample_rows(TensorBlocks(torch.zeros(59_000, 64)).layout, 1000) is None


@pytest.mark.parametrize("weighted", [False, True])
def test_the_sample_finds_all_clusters_from_a_bad_start(small_limits, engine, weighted):
    points = blobs()
    start, weights = points[::16][:16], np.random.default_rng(1).uniform(0.5, 2, size=3000)
    model = lf.RelocatingKMeans(16, init=start, effort=4, random_state=0, engine=engine)
    model.fit(points, sample_weight=weights if weighted else None)
    assert len(np.unique(model.labels_[:16])) == 16
    assert (np.diff(model.objective_history_) <= 0).all()


def test_a_weighted_sample_is_drawn_in_one_pass(engine):
    points, weights = torch.arange(400.0)[:, None], torch.zeros(400, dtype=torch.float64)
    weights[100:300] = torch.arange(1.0, 201)
    blocks = TensorBlocks(points, weights)
    with choose(engine, blocks).open(blocks) as session:
        drawn = [session.fold(RowsByWeight(50, seed))[1].cpu() for seed in range(20)]
        every = session.fold(RowsByWeight(1000, 0))[1].cpu()
    assert sorted(every.tolist()) == list(range(100, 300))
    assert all(len(rows.unique()) == 50 for rows in drawn)
    assert 220 < torch.cat(drawn).double().mean() < 236  # with equal weights: 199.5
    keys, rows = RowsByWeight(50, 3)._keep_smallest(torch.tensor([2.0, 1.0]), torch.tensor([7, 8]))
    assert (keys.tolist(), rows.tolist()) == ([1.0, 2.0], [8, 7])


def test_few_rows_with_weight(small_limits, engine):
    points, weights = blobs(), np.zeros(3000)
    weights[:40] = 1
    model = lf.RelocatingKMeans(16, effort=1, random_state=0, engine=engine)
    model.fit(points, sample_weight=weights)
    alone = lf.RelocatingKMeans(16, random_state=0).fit(points[:40])
    assert model.inertia_ < 1.2 * alone.inertia_


def test_layers_on_the_sample_are_not_counted(small_limits, monkeypatch):
    points, heard = blobs(), []
    model = lf.RelocatingKMeans(16, effort=4, random_state=0, callback=heard.append).fit(points)
    assert model.n_iter_ == len(heard)
    assert all(progress.n_points == 3000 for progress in heard)
    monkeypatch.setattr(sampling, "LARGE", 1 << 40)
    whole = lf.RelocatingKMeans(16, effort=4, random_state=0).fit(points)
    assert model.n_iter_ < whole.n_iter_


def test_never_above_lloyd_from_the_same_start(small_limits):
    points = np.random.default_rng(3).normal(size=(2000, 3))
    for seed in range(3):
        start = points[seed * 20 : seed * 20 + 20]
        ours = lf.RelocatingKMeans(20, init=start, effort=2, random_state=seed).fit(points)
        assert ours.inertia_ <= lf.KMeans(20, init=start).fit(points).inertia_


def test_same_seed_same_bits(small_limits):
    one, two = (
        lf.RelocatingKMeans(16, effort=2, random_state=5).fit(blobs()).cluster_centers_
        for _ in range(2)
    )
    assert (one == two).all()


def test_a_time_limit_holds_on_the_sample(small_limits):
    model = lf.RelocatingKMeans(16, effort="best", time_limit=0.0, random_state=0).fit(blobs())
    assert model.n_iter_ == 0


def test_the_sample_gets_half_of_the_time(small_limits, monkeypatch):
    """A clock that advances by a second each time somebody looks at it."""
    clock = itertools.count(1.0)
    for module in ("solving.run", "solving.sampling", "estimators.base"):
        monkeypatch.setattr(f"lloydformer.{module}.perf_counter", lambda: next(clock))
    heard = []
    lf.RelocatingKMeans(
        16, effort="best", time_limit=400.0, random_state=0, callback=lambda p: heard.append(p)
    ).fit(blobs())
    assert heard
    assert all(progress.n_points == 3000 for progress in heard)
    assert next(clock) < 450


def test_ctrl_c_on_the_sample_keeps_its_best(small_limits, monkeypatch, engine):
    make_child = sampling.PoolRun._make_child

    def stop(run, number):
        if run.fit.session.layout.n_rows < 3000:
            raise KeyboardInterrupt
        return make_child(run, number)

    monkeypatch.setattr(sampling.PoolRun, "_make_child", stop)
    for limit in (None, 1000.0):
        how = {"effort": 4, "time_limit": limit, "random_state": 0, "engine": engine}
        model = lf.RelocatingKMeans(16, **how)
        with pytest.raises(KeyboardInterrupt):
            model.fit(blobs())
        assert model.n_iter_ == 0
        assert model.inertia_ == pytest.approx(-model.score(blobs()))
        assert model.inertia_ < 1.5 * 2 * 3000  # the noise is 2 for each row, if all are found


def test_ctrl_c_before_the_sample_has_a_solution_keeps_nothing(small_limits, monkeypatch):
    def stopped(*of):
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling, "seeds_of_starts", stopped)
    model = lf.RelocatingKMeans(16, effort=4, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(blobs())
    assert not hasattr(model, "inertia_")


def test_ctrl_c_while_the_sample_seeds_its_second_start_keeps_the_first(small_limits, monkeypatch):
    seeds_of_starts = sampling.seeds_of_starts

    def stop_after_one(*of):
        yield next(iter(seeds_of_starts(*of)))
        raise KeyboardInterrupt

    monkeypatch.setattr(sampling, "seeds_of_starts", stop_after_one)
    for limit in (None, 1000.0):
        model = lf.RelocatingKMeans(16, effort=4, time_limit=limit, random_state=0)
        with pytest.raises(KeyboardInterrupt):
            model.fit(blobs())
        assert model.n_iter_ == 0
        assert model.inertia_ == pytest.approx(-model.score(blobs()))


def test_sparse_rows_have_no_sample(small_limits, monkeypatch):
    def gathered(*of):
        raise AssertionError("a sample of sparse rows would be dense")

    monkeypatch.setattr(sampling, "solve_sample", gathered)
    rows = sparse.random(2000, 30, density=0.1, format="csr", random_state=0)
    assert lf.RelocatingKMeans(4, effort=1, random_state=0, max_iter=100).fit(rows).n_iter_ > 0
