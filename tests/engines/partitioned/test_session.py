"""Data in parts: the bits of one process, for every algorithm, any cut, and lost state."""

import numpy as np
import pytest
import torch
from partitioned_engine import LossyEngine

import lloydformer as lf
from lloydformer.engines import ENGINES, instruction_set
from lloydformer.engines.native import tasks
from lloydformer.engines.partitioned.requests import FoldRequest, ForgetRequest
from lloydformer.engines.partitioned.session import Journal, RunningSums
from lloydformer.estimators import ALGORITHMS, source
from lloydformer.plans.assign import Moments, NearestDistances, NearestSums
from lloydformer.plans.seeding import NewSeed
from lloydformer.plans.trimmed import DistanceHistogram

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
LEAF = 64
ESTIMATORS = {
    **{name: (known.estimator, {}) for name, known in ALGORITHMS.items()},
    "learned": (lf.LearnedKMeans, {}),
    "minibatches": (lf.KMeans, {"batch_size": 100}),
    "softmax": (lf.RobustKMeans, {"activation": "softmax"}),
    "medoids of the paper": (lf.KMedoids, {"method": "paper"}),
    "medoids without penalty": (lf.KMedoids, {"method": "paper", "separation": None}),
}


@pytest.fixture(autouse=True)
def many_leaves(monkeypatch):
    """Short leaves, so that a little data has many; and no whole loops in one call."""
    monkeypatch.setattr(source, "leaf_rows", lambda *sizes: LEAF)
    monkeypatch.setattr(source, "part_rows", lambda *sizes: LEAF)
    monkeypatch.setattr(tasks, "_ONE_CALL", 0)


@pytest.fixture
def points(rng):
    middles = 3 * rng.normal(size=(6, 3))
    rows = middles[rng.integers(6, size=900)] + rng.normal(size=(900, 3))
    rows[100:140] = rows[100]  # ties and duplicates
    return rows


def fitted(monkeypatch, engine, name, points, weights=None, **more):
    monkeypatch.setitem(ENGINES, "parts", lambda: engine)
    estimator, settings = ESTIMATORS[name]
    settings = {"n_clusters": 7, "random_state": 1, "max_iter": 8, **settings, **more}
    if estimator is lf.LearnedKMeans:
        settings["n_steps"] = settings.pop("max_iter")
    model = estimator(engine="native" if engine is None else "parts", **settings)
    return model.fit(points, sample_weight=weights)


def assert_same_bits(one, other):
    for name in ("cluster_centers_", "labels_", "inertia_", "n_iter_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    np.testing.assert_array_equal(one.objective_history_, other.objective_history_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "start", [pytest.param("k-means++", marks=pytest.mark.long), "k-means||", "random"]
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_algorithm_has_the_bits_of_one_process(name, start, points, rng, monkeypatch):
    weights = rng.integers(0, 4, size=len(points)) * rng.random(len(points))
    settings = {"init": start, "n_init": 1 if name == "minibatches" else 2, "max_iter": 4}
    if start != "k-means++":
        settings["weights"] = weights
    if start != "k-means||":
        points = points.astype(np.float32)
    engine = LossyEngine(5, 2, n_threads=2 if start == "random" else 1, loses=0.05, seed=3)
    alone = fitted(monkeypatch, None, name, points, **settings)
    assert_same_bits(alone, fitted(monkeypatch, engine, name, points, **settings))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_relocations_lead_to_the_same_bits(seed, points, monkeypatch):
    settings = {"max_iter": 150, "init": "random", "random_state": seed, "n_clusters": 9}
    alone = fitted(monkeypatch, None, "relocating", points, **settings)
    engine = LossyEngine(5, 2, seed=seed)
    found = fitted(monkeypatch, engine, "relocating", points, **settings)
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)
    np.testing.assert_array_equal(alone.labels_, found.labels_)
    np.testing.assert_allclose(alone.objective_history_, found.objective_history_, rtol=1e-12)
    assert alone.n_iter_ == found.n_iter_
    assert len(found.objective_history_) > 20


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_relocations_of_many_rows_have_the_same_bits(dtype, rng, monkeypatch):
    """Labels near ties are those of the kernel that relocates in one process."""
    middles = rng.uniform(size=(30, 4))
    X = middles[rng.integers(30, size=2_500)] + 0.1 * rng.normal(size=(2_500, 4))
    settings = {"max_iter": 60, "tol": 0.01, "init": "random", "n_init": 1, "n_clusters": 12}
    alone = fitted(monkeypatch, None, "relocating", X.astype(dtype), **settings)
    found = fitted(monkeypatch, LossyEngine(5, 2), "relocating", X.astype(dtype), **settings)
    np.testing.assert_array_equal(alone.cluster_centers_, found.cluster_centers_)
    np.testing.assert_array_equal(alone.labels_, found.labels_)
    assert alone.n_iter_ == found.n_iter_ > 20


def test_the_chunked_engine_runs_where_there_are_no_kernels(points, monkeypatch):
    alone = lf.KMeans(7, random_state=1, max_iter=8, engine="chunked").fit(points)
    engine = LossyEngine(6, 2, inside="chunked")
    assert_same_bits(alone, fitted(monkeypatch, engine, "kmeans", points))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("trimmed", {"init": "robust"}),
        ("soft", {"inverse_temperature": "scale"}),
        ("soft", {"inverse_temperature": 1e3}),  # faint clusters: the plain fold runs
        ("robust", {"inverse_temperature": "scale", "activation": "softmax"}),
        ("kmeans", {"empty": "keep"}),
    ],
)
def test_other_starts_and_temperatures(name, settings, points, monkeypatch):
    settings = {"max_iter": 3, **settings}
    alone = fitted(monkeypatch, None, name, points, **settings)
    engine = LossyEngine(5, 2, loses=0.05, seed=1)
    assert_same_bits(alone, fitted(monkeypatch, engine, name, points, **settings))


def test_empty_clusters_are_filled_by_the_farthest_point_of_all_parts(points, monkeypatch):
    init = np.concatenate([points[:5], [[1e3] * 3, [-1e3] * 3]])
    alone = fitted(monkeypatch, None, "kmeans", points, init=init)
    assert_same_bits(alone, fitted(monkeypatch, LossyEngine(), "kmeans", points, init=init))


def test_one_part_runs_whole_tasks(points, monkeypatch):
    monkeypatch.setattr(tasks, "_ONE_CALL", 1 << 22)
    engine = LossyEngine(1, 1)
    for name in ("kmeans", "relocating"):
        alone = fitted(monkeypatch, None, name, points, max_iter=60)
        assert_same_bits(alone, fitted(monkeypatch, engine, name, points, max_iter=60))
    methods = {getattr(request, "method", None) for request in engine.requests}
    assert {"run", "fold"} <= methods


def test_state_is_made_again_by_few_folds(points, monkeypatch):
    """After ten iterations a lost part runs the last one again, not all ten."""
    engine = LossyEngine(4, 2, loses=0.1, seed=5)
    fitted(monkeypatch, engine, "trimmed", points, max_iter=10)
    replays = [len(request.entries) for request in engine.requests if hasattr(request, "entries")]
    assert len(replays) > 5
    assert max(replays) <= 5 + 7  # folds of a step; seeds of k-means++


def test_the_journal_keeps_what_the_state_depends_on():
    journal, centers = Journal(), torch.zeros(2, 1)
    first, later = (FoldRequest(fold=NewSeed(centers[:1], is_first)) for is_first in (True, False))
    for request in (FoldRequest(fold=NearestSums(centers)), ForgetRequest(), first, later):
        journal.add(request)
    assert journal.entries[1:] == (first, later)
    nearest, measure = (
        FoldRequest(fold=NearestSums(centers)),
        FoldRequest(fold=NearestDistances(centers)),
    )
    for request in (nearest, measure, FoldRequest(fold=Moments())):
        journal.add(request)
    assert journal.entries[:2] == (nearest, measure)
    histogram = FoldRequest(fold=DistanceHistogram(torch.zeros(2, dtype=torch.long), 8))
    journal.add(histogram)
    assert journal.entries == (nearest, measure, histogram)


def test_a_fold_that_says_nothing_of_columns_keeps_everything_before_it():
    class Unknown:
        def map(self, block): ...

        def merge(self, first, second): ...

    journal = Journal()
    requests = [
        FoldRequest(fold=Moments()),
        FoldRequest(fold=Unknown()),
        FoldRequest(fold=Unknown()),
    ]
    for request in requests:
        journal.add(request)
    assert journal.entries == tuple(requests[1:])


def test_sums_that_rounding_has_eaten_are_added_up_again():
    running = RunningSums(1, 1)
    one = torch.ones(1, dtype=torch.int64)
    running.add(torch.tensor([[1e9]]).double(), torch.tensor([1e9]).double(), 2 * one)
    assert not running.is_imprecise
    running.add(torch.tensor([[1 - 1e9]]).double(), torch.tensor([1 - 1e9]).double(), -one)
    assert running.is_imprecise
    running.add(torch.tensor([[-0.5]]).double(), torch.tensor([-0.5]).double(), -one)
    assert running.sums.item() == running.masses.item() == 0
    assert not running.is_imprecise


def test_heavy_points_that_leave_a_cluster_do_not_spoil_its_sums(points, monkeypatch):
    """The sums of a cluster are added up again once it has a millionth of its weight."""
    weights = np.ones(len(points))
    weights[:3] = 1e9
    init = points[[0, 500, 700, 800]]
    settings = {"weights": weights, "init": init, "n_clusters": 4, "max_iter": 30}
    alone = fitted(monkeypatch, None, "kmeans", points, **settings)
    engine = LossyEngine(6, 2)
    assert_same_bits(alone, fitted(monkeypatch, engine, "kmeans", points, **settings))


def test_an_interrupt_in_the_middle_makes_the_state_again(points, monkeypatch):
    engine = LossyEngine(5, 2)

    def stop(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    alone = lf.KMeans(7, random_state=1, engine="native", callback=stop)
    parts = lf.KMeans(7, random_state=1, engine="parts", callback=stop)
    monkeypatch.setitem(ENGINES, "parts", lambda: engine)
    for model in (alone, parts):
        with pytest.raises(KeyboardInterrupt):
            model.fit(points)
    assert_same_bits(alone, parts)
