"""The search for medoids in kernels and in memory: the same draws, bits, and the optimum."""

from itertools import combinations

import kmedoids
import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.native.engine import Native
from lloydformer.plans import medoid_search
from lloydformer.plans.medoid_moves import METRICS
from lloydformer.plans.medoid_search import EFFORTS, KernelSearch, begin_search


def matrix(X: np.ndarray, metric: str) -> np.ndarray:
    return pairwise_distances(X, metric=metric)


def loss(distances: np.ndarray, medoids: np.ndarray) -> float:
    return float(distances[:, medoids].min(axis=1).sum())


def mixture(n: int, d: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.uniform(-3, 3, size=(6, d))[rng.integers(6, size=n)] + rng.normal(size=(n, d))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [
        (120, 3, 1),
        pytest.param(150, 20, 2, marks=pytest.mark.long),
        pytest.param(230, 3, 7, marks=pytest.mark.long),
        (230, 20, 7),
        pytest.param(400, 3, 35, marks=pytest.mark.long),
        (401, 16, 35),
    ],
)
@pytest.mark.parametrize("metric", METRICS)
def test_kernels_and_the_search_in_memory_agree_draw_for_draw(metric, n, d, k, weighted):
    """The same medoids and the same losses after every move; more than one batch of medoids.

    With 16 features and more, the kernels keep all distances of so few rows. Of two rows that are a
    cluster by themselves, rounding may choose either: k is not larger.
    """
    X = mixture(n, d, seed=k)
    weights = np.random.default_rng(1).integers(0, 4, size=n).astype(float) if weighted else None
    models = [
        lf.KMedoids(k, metric=metric, random_state=3, engine=engine).fit(X, sample_weight=weights)
        for engine in ("native", "chunked")
    ]
    assert models[0].medoid_indices_.tolist() == models[1].medoid_indices_.tolist()
    histories = [model.objective_history_ for model in models]
    assert len(histories[0]) == len(histories[1])
    np.testing.assert_allclose(*histories, rtol=1e-12)
    np.testing.assert_array_equal(models[0].labels_, models[1].labels_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_the_same_bits_for_any_number_of_threads(metric, dtype):
    X = mixture(9000, 33, seed=5).astype(dtype)
    found = [searched(Native(threads), X, metric) for threads in (1, 2, 3)]
    assert found[0] == found[1] == found[2]


def searched(engine, X, metric):
    blocks = TensorBlocks(torch.from_numpy(X), directions=metric == "cosine")
    with engine.open(blocks) as session:
        search = begin_search(session, metric, np.arange(12))
        search.descend(5, 0.02)
        search.exchange(seed=1, layer=0)
        search.relocate(1, 1, 5, 3, 0.1)
        return search.medoids.tolist(), search.loss


@pytest.mark.parametrize("metric", METRICS)
def test_losses_are_those_of_kmedoids(metric):
    X = mixture(300, 4)
    model = lf.KMedoids(5, metric=metric, random_state=0).fit(X)
    distances = matrix(X, metric)
    assert model.inertia_ == pytest.approx(loss(distances, model.medoid_indices_))
    assert -model.score(X) == pytest.approx(model.inertia_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.labels_, distances[:, model.medoid_indices_].argmin(axis=1))
    theirs = kmedoids.fasterpam(distances, 5, random_state=0)
    assert model.inertia_ <= 1.03 * theirs.loss


def best_loss(distances: np.ndarray, k: int) -> float:
    """The lowest loss of all k rows."""
    subsets = np.array(list(combinations(range(len(distances)), k)))
    return float(distances[:, subsets].min(axis=2).sum(axis=0).min())


@pytest.mark.parametrize("given", [False, True], ids=["rows", "precomputed"])
@pytest.mark.parametrize(
    "metric", [METRICS[0], *(pytest.param(m, marks=pytest.mark.long) for m in METRICS[1:])]
)
def test_the_optimum_of_tiny_problems(metric, given):
    """200 problems: the best of all subsets in at least 180, and never another loss than it has.

    given: the search gets the matrix of distances.
    """
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(8, 16)), int(rng.integers(2, 5))
        X = rng.normal(size=(n, 2))
        distances = matrix(X, metric)
        model = lf.KMedoids(k, metric="precomputed" if given else metric, random_state=seed)
        model.fit(distances if given else X)
        assert model.inertia_ == pytest.approx(loss(distances, model.medoid_indices_), abs=1e-9)
        found += model.inertia_ <= best_loss(distances, k) + 1e-9
    assert found >= 180


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", [*METRICS, "precomputed"])
def test_a_sweep_has_the_same_bits_in_any_number_of_calls(metric, dtype, monkeypatch):
    X = mixture(400, 5).astype(dtype)
    X = matrix(X, "euclidean").astype(dtype) if metric == "precomputed" else X
    blocks = TensorBlocks(torch.from_numpy(X), directions=metric == "cosine")
    run, found = KernelSearch._run, []
    for call in (2**31, 1, 400 * 8 * 70):
        calls = []
        monkeypatch.setattr(medoid_search, "CALL", call)

        def counting(self, name, calls=calls, **arguments):
            calls.append(name)
            return run(self, name, **arguments)

        monkeypatch.setattr(KernelSearch, "_run", counting)
        with Native(1).open(blocks) as session:
            search = begin_search(session, metric, np.arange(7))
            assert search.sweep(40)
            first = search.medoids.tolist(), search.loss
            search = begin_search(session, metric, np.arange(7, 14))
            found.append((first, search.sweep(1000), search.medoids.tolist(), search.loss))
        assert (calls.count("sweep") == 2) == (call == 2**31)
    assert found[0] == found[1] == found[2]


def test_another_move_ends_a_sweep(monkeypatch):
    """What is left of an interrupted sweep has no effect on the next one."""
    X = mixture(400, 5)
    monkeypatch.setattr(medoid_search, "CALL", 1)
    for move in (
        lambda search: search._run("begin", metric="manhattan"),
        lambda search: search.descend(5, 0.02),
        lambda search: search.exchange(1, 0),
        lambda search: search.relocate(1, 0, 3, 3, 0.1),
    ):
        found = []
        for _ in range(2):
            with Native(1).open(TensorBlocks(torch.from_numpy(X))) as session:
                search = begin_search(session, "manhattan", np.arange(7))
                search._run("sweep", reach=400, most=32)
                search._run("sweep", reach=400, most=32)
                move(search)
                if not found:
                    search = begin_search(session, "manhattan", search.medoids)
                search.sweep(400)
                found.append((search.medoids.tolist(), search.loss))
        assert found[0] == found[1]


@pytest.mark.parametrize("algorithm", ["fasterpam", "relocate"])
def test_ctrl_c_within_a_sweep_keeps_the_medoids_so_far(algorithm, monkeypatch):
    X = mixture(600, 3)
    run, losses = KernelSearch._run, []

    def run_or_stop(self, name, **arguments):
        if name == "sweep" and losses:
            raise KeyboardInterrupt
        found = run(self, name, **arguments)
        if name == "sweep":
            losses.append(self.loss)
        return found

    monkeypatch.setattr(medoid_search, "CALL", 1)
    monkeypatch.setattr(KernelSearch, "_run", run_or_stop)
    model = lf.KMedoids(5, method=algorithm, init=X[:5], random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert model.inertia_ == pytest.approx(losses[0])
    assert model.inertia_ == pytest.approx(loss(matrix(X, "sqeuclidean"), model.medoid_indices_))
    assert (np.diff(model.objective_history_) <= 0).all()
    assert model.objective_history_[0] > model.inertia_


@pytest.mark.parametrize("metric", METRICS)
def test_the_same_bits_with_and_without_a_kept_matrix(metric):
    """With a column of zeros more, n <= 4 d: the kernels keep all distances."""
    X = mixture(2100, 524).astype(np.float32)
    wider = np.c_[X, np.zeros(2100, np.float32)]
    assert searched(Native(1), X, metric) == searched(Native(1), wider, metric)


@pytest.mark.parametrize("k", [1, 3, 9])
def test_after_the_last_sweep_no_exchange_helps(k):
    X = mixture(120, 3, seed=k)
    distances = matrix(X, "manhattan")
    medoids = lf.KMedoids(k, metric="manhattan", random_state=0).fit(X).medoid_indices_
    now = loss(distances, medoids)
    for j in range(k):
        for x in range(120):
            assert loss(distances, np.r_[np.delete(medoids, j), x]) >= now * (1 - 1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_row_has_a_medoid_at_the_largest_distance(dtype):
    """The estimator refuses such distances; the kernels must not read outside of their table."""
    distances = torch.full((6, 6), torch.finfo(dtype).max, dtype=dtype)
    blocks = TensorBlocks(distances, given_origin=torch.zeros(6, dtype=dtype))
    with Native(1).open(blocks) as session:
        search = begin_search(session, "precomputed", np.arange(3))
        search.sweep(6)
        assert sorted(search.medoids) == [0, 1, 2]


def test_few_rows_and_long_searches_have_their_full_patience():
    medium, high = EFFORTS["medium"], EFFORTS["high"]
    assert medium.patience_for(256, 50) == 5
    assert medium.patience_for(1000, 50) == 2
    assert high.patience_for(1000, 50) == 20
