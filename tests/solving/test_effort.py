"""RelocatingKMeans with a pool: better with more effort, bounded, and stopped with its best."""

import itertools
import signal
import threading
import time

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.datasets import load_digits

import lloydformer as lf
from lloydformer.solving.effort import EFFORTS, effort_of

DIGITS = load_digits().data[:600]
SMALL = DIGITS[:200, ::4]


def test_more_effort_is_better():
    found = {
        effort: sum(
            lf.RelocatingKMeans(20, effort=effort, random_state=seed).fit(DIGITS[:, ::2]).inertia_
            for seed in range(5)
        )
        for effort in ("low", "medium", "high")
    }
    assert found["high"] < found["medium"] < found["low"]


def test_low_is_one_start_without_a_pool():
    one = lf.RelocatingKMeans(8, random_state=3).fit(DIGITS)
    two = lf.RelocatingKMeans(8, effort=0, patience=5, random_state=3).fit(DIGITS)
    assert (one.cluster_centers_ == two.cluster_centers_).all()
    assert effort_of("low").n_pool == effort_of(0).n_pool == 1


def test_a_number_is_that_of_recombinations():
    assert effort_of(30).n_children_for(5, 100) == effort_of(30).n_children_for(50, 100) == 30
    assert 4 <= effort_of(1).n_pool <= effort_of(30).n_pool <= effort_of(10_000).n_pool


@pytest.mark.parametrize("init", ["k-means++", "random", "array"])
def test_never_rises_and_never_above_lloyd_from_the_same_start(engine, init):
    start = SMALL[:6]
    fit = lf.RelocatingKMeans(
        6, init=start if init == "array" else init, effort=2, random_state=1, engine=engine
    ).fit(SMALL)
    assert (np.diff(fit.objective_history_) <= 0).all()
    assert len(fit.objective_history_) == fit.n_iter_ + 1
    assert fit.objective_history_[-1] == pytest.approx(fit.inertia_)
    if init == "array":
        assert fit.inertia_ <= lf.KMeans(6, init=start).fit(SMALL).inertia_


@pytest.mark.parametrize("effort", ["low", 2])
def test_rounded_centers_do_not_let_it_rise(effort, engine):
    points = (SMALL / 100 + 3000).astype(np.float32)
    for seed, limit in itertools.product(range(3), [None, 100.0]):
        how = {"effort": effort, "time_limit": limit, "random_state": seed, "engine": engine}
        fit = lf.RelocatingKMeans(6, **how).fit(points)
        assert (np.diff(fit.objective_history_) <= 0).all()
        assert fit.objective_history_[-1] == fit.inertia_


def test_layers_are_bounded_and_all_of_them_are_heard(engine):
    heard = []
    fit = lf.RelocatingKMeans(
        8, effort=8, max_iter=60, random_state=0, engine=engine, callback=heard.append
    ).fit(DIGITS)
    assert 20 < fit.n_iter_ == len(heard) <= 60
    assert [progress.iteration for progress in heard] == list(range(len(heard)))
    assert [progress.objective for progress in heard] == pytest.approx(
        fit.objective_history_[:-1].tolist()
    )


def test_the_callback_does_not_change_the_result():
    one, two = (
        lf.RelocatingKMeans(8, effort=6, random_state=0, callback=call).fit(DIGITS)
        for call in (None, lambda progress: None)
    )
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(one.objective_history_, two.objective_history_)


@pytest.mark.parametrize("at", [1, 30, 120])
def test_an_interrupt_keeps_the_best_so_far(at, engine):
    heard = []

    def stop(progress):
        heard.append(progress.objective)
        if len(heard) == at:
            raise KeyboardInterrupt

    model = lf.RelocatingKMeans(8, effort=20, random_state=0, engine=engine, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(SMALL)
    assert model.inertia_ <= min(heard) * (1 + 1e-9)
    assert model.n_iter_ == at
    assert model.labels_.shape == (200,)


@pytest.mark.parametrize("effort", ["low", "best"])
def test_a_time_limit_ends_it_with_a_result(effort, engine):
    model = lf.RelocatingKMeans(
        5, effort=effort, time_limit=0.0, random_state=0, engine=engine
    ).fit(SMALL)
    assert model.n_iter_ == 0
    assert model.inertia_ == pytest.approx(-model.score(SMALL))
    longer = lf.RelocatingKMeans(5, effort=effort, time_limit=0.3, random_state=0, engine=engine)
    assert longer.fit(SMALL).inertia_ < model.inertia_  # a GPU compiles its kernels
    began = time.perf_counter()
    longer.fit(SMALL)
    assert time.perf_counter() - began < 3


@pytest.mark.parametrize("how", [{"patience": 3000}, {"effort": 10_000}])
def test_a_time_limit_ends_what_could_be_one_call(how):
    points = np.random.default_rng(0).normal(size=(5000, 8))
    began = time.perf_counter()
    model = lf.RelocatingKMeans(50, time_limit=0.1, random_state=0, **how).fit(points)
    assert time.perf_counter() - began < 1
    assert model.n_iter_ > 0


def test_the_first_start_is_run_before_the_others_are_seeded(monkeypatch):
    clock = (number * 0.01 for number in itertools.count())
    monkeypatch.setattr("lloydformer.solving.run.perf_counter", lambda: next(clock))
    monkeypatch.setattr("lloydformer.estimators.base.perf_counter", lambda: next(clock))
    model = lf.RelocatingKMeans(8, effort="best", time_limit=0.2, random_state=0).fit(DIGITS)
    one = lf.KMeans(8, random_state=0, max_iter=1).fit(DIGITS)
    assert 1 < model.n_iter_ < 20
    assert model.inertia_ < one.inertia_


def test_a_generous_time_limit_changes_nothing():
    one, two = (
        lf.RelocatingKMeans(8, effort=6, random_state=0, time_limit=limit).fit(DIGITS)
        for limit in (None, 1000.0)
    )
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(one.objective_history_, two.objective_history_)


@pytest.fixture
def ctrl_c_is_heard():
    """A process that was started in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c_is_heard")
@pytest.mark.parametrize(
    ("how", "after"),
    # Longer than that, but not by much: Python raises the interrupt when the one call has returned.
    [({"patience": 10**6, "max_iter": 20_000}, 0.4), ({"effort": 400}, 1.5)],
)
def test_ctrl_c_in_one_call_keeps_the_best_so_far(how, after):
    points = np.random.default_rng(0).normal(size=(5000, 8))
    model = lf.RelocatingKMeans(50, random_state=0, **how)
    main = threading.main_thread().ident
    assert main is not None
    press = threading.Timer(after, signal.pthread_kill, (main, signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(points)
    assert model.n_iter_ > 0
    assert model.inertia_ == pytest.approx(-model.score(points))


def test_ctrl_c_while_further_starts_are_seeded_keeps_the_first(monkeypatch):
    def seeds(session, n_clusters, rng, n_starts):
        yield torch.arange(n_clusters)
        raise KeyboardInterrupt

    monkeypatch.setattr("lloydformer.estimators.initial_centers.seeds_of_starts", seeds)
    model = lf.RelocatingKMeans(8, effort="high", time_limit=100.0, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DIGITS)
    assert model.inertia_ < lf.KMeans(8, init=DIGITS[:8]).fit(DIGITS).inertia_ * 1.001


def test_several_pools_draw_anew():
    one = lf.RelocatingKMeans(12, effort=2, n_init=1, random_state=0).fit(DIGITS)
    two = lf.RelocatingKMeans(12, effort=2, n_init=3, random_state=0).fit(DIGITS)
    assert two.inertia_ <= one.inertia_


def test_sparse_rows_are_taken():
    counts = sparse.random(200, 30, density=0.1, format="csr", random_state=0)
    one, two = (
        lf.RelocatingKMeans(4, effort=3, random_state=0, init=counts[:4].toarray()).fit(X)
        for X in (counts, counts.toarray())
    )
    assert one.inertia_ == pytest.approx(two.inertia_, rel=0.05)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("k", [1, 3, 6])
def test_fewer_different_points_than_clusters(k, engine):
    points = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], 4, axis=0)
    model = lf.RelocatingKMeans(k, effort=5, random_state=0, engine=engine).fit(points)
    assert model.inertia_ == pytest.approx(0 if k > 1 else points.var(axis=0).sum() * 12)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"effort": "huge"}, "effort"), ({"effort": -1}, "effort"), ({"effort": 2.5}, "effort"),
     ({"effort": True}, "effort"), ({"effort": False}, "effort"),
     ({"time_limit": -1.0}, "time_limit")],
)  # fmt: skip
def test_wrong_parameters_are_named(wrong, word):
    with pytest.raises(ValueError, match=word):
        lf.RelocatingKMeans(3, **wrong).fit(DIGITS)


def test_efforts_grow():
    for k in (10, 50):
        sizes = [(e.n_pool, e.n_children_for(k, 1000)) for e in EFFORTS.values()]
        assert sizes == sorted(sizes)
    high = effort_of("high")
    assert high.n_children_for(24, 400) < high.n_children_for(25, 400)
    assert high.n_children_for(25, 400) < high.n_children_for(25, 399)


@pytest.mark.parametrize("effort", ["medium", "high", "best"])
@pytest.mark.parametrize("max_iter", [3, 30])
def test_few_layers_are_not_worse_with_more_effort(effort, max_iter):
    for seed in range(3):
        low, more = (
            lf.RelocatingKMeans(10, effort=e, max_iter=max_iter, random_state=seed).fit(DIGITS)
            for e in ("low", effort)
        )
        assert 0 < more.n_iter_ <= max_iter
        assert more.inertia_ == low.inertia_


def test_a_small_limit_leaves_enough_layers_to_each_start():
    for name, effort in EFFORTS.items():
        assert effort.within(None) == effort
        assert effort.within(39) == EFFORTS["low"]
        for most in (40, 100, 1000):
            assert effort.within(most).n_pool <= max(1, most // 20)
        assert effort.within(400).n_pool == effort.n_pool, name
    heard = []
    lf.RelocatingKMeans(
        8, effort="high", max_iter=60, random_state=0, callback=heard.append
    ).fit(DIGITS)  # fmt: skip
    assert 20 < len(heard) <= 60


def test_no_children_when_there_is_no_error_left(engine):
    points = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]], 4, axis=0)
    few, many = (
        lf.RelocatingKMeans(3, effort=e, random_state=0, engine=engine).fit(points).n_iter_
        for e in (4, 24)
    )
    assert few == many


@pytest.mark.parametrize("how", [{"effort": 5000}, {"effort": 3, "max_iter": 2**24}])
def test_a_large_budget_is_still_one_call(how, monkeypatch):
    def steps(*of):
        raise AssertionError("layer by layer")

    if lf.engines.instruction_set() is None:
        pytest.skip("the kernels of the native engine were not built here")
    one = lf.RelocatingKMeans(3, effort=3, random_state=0).fit(SMALL)
    monkeypatch.setattr("lloydformer.solving.recombinations.RelocationRun", steps)
    monkeypatch.setattr("lloydformer.solving.effort.Effort.n_children_for", lambda self, k, n: 3)
    two = lf.RelocatingKMeans(3, random_state=0, engine="native", **how)
    assert two.fit(SMALL).inertia_ <= one.inertia_ * (1 + 1e-9)


@pytest.mark.parametrize("rest", [None, 2])
def test_walks_that_fill_their_history_are_run_layer_by_layer(rest, monkeypatch):
    options = None if rest is None else {"n_iter_between": rest}
    how = {"effort": 3, "search_options": options, "random_state": 0}
    one = lf.RelocatingKMeans(6, **how).fit(SMALL)
    monkeypatch.setattr("lloydformer.engines.native.tasks._LAYERS", 4 * 30)
    two = lf.RelocatingKMeans(6, **how).fit(SMALL)
    np.testing.assert_allclose(two.cluster_centers_, one.cluster_centers_, atol=1e-9)
    assert two.n_iter_ == one.n_iter_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("effort", ["low", 1])
def test_never_above_lloyd_that_keeps_empty_clusters(effort):
    """Starts far from the data, most of whose clusters have no points."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(60, 2))
        start = points[:6] + 10 * rng.normal(size=(6, 2))
        lloyd = lf.KMeans(6, init=start, empty="keep").fit(points)
        ours = lf.RelocatingKMeans(6, init=start, effort=effort, random_state=seed).fit(points)
        assert ours.inertia_ <= lloyd.inertia_ * (1 + 1e-12)
