"""Timing of contenders, points and objectives of the benchmark."""

from functools import partial

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse

from lloydformer.jobs.bench import measure as measuring
from lloydformer.jobs.bench.contenders import CHUNKED, ELKAN, LLOYD, OUR_ALGORITHMS, OURS, limited
from lloydformer.jobs.bench.measure import measure
from lloydformer.jobs.bench.passes import PASS, PRODUCTS
from lloydformer.jobs.bench.points import mixture, noise, repeated, some_rows, words
from lloydformer.jobs.bench.problem import BenchCase, BenchProblem, Fitted, objective
from lloydformer.jobs.bench.questions import QUESTIONS
from lloydformer.jobs.bench.result import excess, markdown, mean_ahead, seconds


class Clockwork:
    """A contender that takes the given times, on a simulated clock."""

    def __init__(self, name, package, times, clock, n_iter=10):
        self.name, self.package = name, package
        self.times, self.clock, self.n_iter = iter(times), clock, n_iter

    def does(self, work):
        return work == "fit"

    def prepared(self, problem):
        return partial(self.work, problem)

    def work(self, problem, seed):
        self.clock.append((self.name, seed))
        Clockwork.now += next(self.times)
        return Fitted(problem.start, self.n_iter)


@pytest.fixture
def clock(monkeypatch):
    Clockwork.now = 0.0
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: Clockwork.now)
    return []


def problem(n=200, d=3, k=4, **settings):
    points = mixture(n, d, k, seed=0)
    return BenchProblem(
        points, k, some_rows(points, k, seed=1), **{"max_iter": 20, "tol": 0.0, **settings}
    )


def test_samples_are_taken_in_turns_and_divided_by_iterations(clock):
    ours = Clockwork("a", "ours", [9, 9, 1, 3, 2], clock)
    peer = Clockwork("b", "theirs", [9, 9, 4, 4, 8], clock)
    row = measure(BenchCase("case", problem), [ours, peer], "iteration", repeats=3)
    assert [name for name, _ in clock[4:]] == ["a", "b", "b", "a", "a", "b"]
    a, b = row["contenders"]["a"], row["contenders"]["b"]
    assert (a["median"], a["fastest"], a["slowest"]) == pytest.approx((0.2, 0.1, 0.3))
    assert a["quartiles"] == pytest.approx([0.15, 0.25])
    assert b["times"] == pytest.approx(2.0)
    assert row["ahead"] == pytest.approx(2.0)
    assert a["n_iter"] == 10


def test_another_engine_of_the_same_package_is_not_a_peer(clock):
    ours = Clockwork("a", "ours", [1] * 4, clock)
    other = Clockwork("chunked", "ours", [1, 1, 5, 5], clock)
    row = measure(BenchCase("case", problem), [ours, other], "fit", repeats=2)
    assert row["contenders"]["chunked"]["times"] == pytest.approx(5.0)
    assert row["ahead"] is None


def test_short_fits_are_repeated_in_a_sample(clock):
    quick = Clockwork("a", "ours", [1, 0.01] + [0.01] * 20, clock)
    row = measure(BenchCase("case", problem), [quick], "fit", repeats=2)
    assert row["contenders"]["a"]["fits"] == 20
    assert [seed for _, seed in clock[2:]] == list(range(20))  # each with a seed of its own


@pytest.mark.parametrize("contender", [OURS, CHUNKED, LLOYD, ELKAN], ids=lambda c: c.name)
def test_contenders_reach_the_same_result_from_the_same_start(contender):
    given = problem(n=2000)
    truth = sklearn.cluster.KMeans(4, init=given.start, n_init=1, max_iter=20, tol=0).fit(
        given.points
    )
    found = contender.fit(given, seed=0)
    assert found.n_iter == truth.n_iter_
    assert objective(given.points, found) == pytest.approx(truth.inertia_, rel=1e-5)


def test_objective_equals_one_by_hand_also_far_from_the_origin():
    points = np.array([[0, 0], [2, 0], [10, 1]], dtype=np.float32)
    centers = np.array([[1, 0], [10, 0]], dtype=np.float32)
    assert objective(points, Fitted(centers, 1)) == pytest.approx(3.0)
    assert objective(points + 4096, Fitted(centers + 4096, 1)) == pytest.approx(3.0)
    assert objective(sparse.csr_matrix(points), Fitted(centers, 1)) == pytest.approx(3.0)


def test_objective_of_labels_and_of_distances_is_that_of_what_was_returned():
    points = np.array([[0, 0], [2, 0], [10, 1]], dtype=np.float32)
    centers = np.array([[1, 0], [10, 0]], dtype=np.float32)
    labels = np.array([0, 0, 0], dtype=np.int32)  # the last one is wrong
    assert objective(points, Fitted(centers, 1, labels)) == pytest.approx(2 + 81 + 1)
    distances = np.array([[1, 9], [3, 8], [9, 2]], dtype=np.float32)
    assert objective(points, Fitted(centers, 1, distances)) == pytest.approx(1 + 9 + 4)


WORKS = [
    *(
        (c, work)
        for c in (OURS, LLOYD)
        for work in ("predict", "transform", "score", "partial_fit")
    ),
    *((c, "pass") for c in (PASS, *PRODUCTS)),
]


@pytest.mark.parametrize(
    ("contender", "work"), WORKS, ids=lambda value: getattr(value, "name", value)
)
def test_contenders_do_the_work_of_a_case(contender, work):
    given = problem(n=2000, work=work, batch=500)
    assert contender.does(work)
    found = contender.prepared(given)(0)
    assert found.n_iter == (4 if work == "partial_fit" else 1)
    if found.found is not None:
        nearest = objective(given.points, Fitted(found.centers, 1))
        assert objective(given.points, found) == pytest.approx(nearest, rel=1e-5)


def test_a_case_has_only_contenders_that_do_its_work(clock):
    ours, peer = (Clockwork(name, name, [1] * 4, clock) for name in "ab")
    peer.does = lambda work: False
    row = measure(BenchCase("case", problem), [ours, peer], "fit", repeats=2)
    assert list(row["contenders"]) == ["a"]
    result = {"rows": {"one": row, "two": {"contenders": {"b": row["contenders"]["a"]}}}}
    result["rows"]["two"]["ahead"] = None
    result["provenance"] = {"versions": {}}
    assert markdown(result).splitlines()[2:] == ["| one | 1 s |  |  |", "| two |  | 1 s |  |"]


def test_rows_of_words_are_sparse_and_have_topics():
    matrix = words(2000, 500, 20, topics=5, seed=0)
    assert matrix.shape == (2000, 500)
    assert matrix.has_canonical_format
    assert matrix.dtype == np.float32
    assert 12 < matrix.nnz / 2000 < 20  # a word that is drawn twice is one number
    assert matrix.data.min() > 0
    fitted = sklearn.cluster.KMeans(5, n_init=3, random_state=0).fit(matrix)
    alone = np.square(matrix - matrix.mean(axis=0)).sum()
    assert fitted.inertia_ < 0.95 * alone


def test_points_depend_on_the_seed_and_sets_are_repeated_with_jitter(tmp_path, rng):
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0), rng.normal(size=50) * 1000])
    np.savez(tmp_path / "set.npz", X=X)
    grown = repeated(tmp_path / "set.npz", 1000, seed=3)
    assert grown.shape == (1000, 2)  # the constant column is dropped
    assert grown.dtype == np.float32
    assert len(np.unique(grown, axis=0)) == 1000
    assert -0.3 < grown.min() < grown.max() < 1.3
    assert np.array_equal(grown, repeated(tmp_path / "set.npz", 1000, seed=3))
    assert np.array_equal(mixture(100, 2, 3, seed=1), mixture(100, 2, 3, seed=1))
    assert not np.array_equal(noise(100, 2, 3, seed=1), noise(100, 2, 3, seed=2))
    assert len(np.unique(some_rows(grown, 50, seed=0), axis=0)) == 50


def test_names_of_rows_are_unique_and_sets_in_the_folder_are_used(tmp_path):
    for question in QUESTIONS.values():
        names = [case.name for case in question.cases(None, 0)]
        assert len(set(names)) == len(names) > 0
    np.savez(tmp_path / "pendigits.npz", X=np.eye(4))
    names = [case.name for case in QUESTIONS["convergence"].cases(tmp_path, 0)]
    assert names[4:] == ["pendigits, 1M, k 64"]


def test_small_problems_start_with_kmeans_plus_plus_and_from_a_given_start():
    drawn, given = (case.make() for case in QUESTIONS["small"].cases(None, 0))
    assert drawn.start is None
    assert given.start.shape == (8, 10)
    assert np.array_equal(drawn.points, given.points)


def test_every_algorithm_stops_at_max_iter():
    names = [contender.name for contender in OUR_ALGORITHMS]
    assert names[0] == "KMeans"
    assert {"SphericalKMeans", "SoftKMeans", "TrimmedKMeans", "RobustKMeans"} <= set(names)
    for contender in OUR_ALGORITHMS:
        assert 1 <= contender.fit(problem(n=500, max_iter=3), seed=0).n_iter <= 3


def test_thread_limits_hold_for_torch_and_openmp_and_are_undone():
    import torch

    from lloydformer.engines.thread_pool import allowed_threads

    before = torch.get_num_threads()
    with limited(1):
        assert (torch.get_num_threads(), allowed_threads()) == (1, 1)
    assert torch.get_num_threads() == before


def test_times_means_and_tables_are_formatted():
    assert [seconds(s) for s in (2.5, 0.0123, 4.567e-5, 3e-9)] == [
        "2.5 s",
        "12.3 ms",
        "45.7 µs",
        "3 ns",
    ]
    assert mean_ahead(
        {"a": {"ahead": 2.0}, "b": {"ahead": 8.0}, "c": {"ahead": None}}
    ) == pytest.approx(4)
    assert mean_ahead({"c": {"ahead": None}}) is None
    row = {
        "contenders": {
            "a": {"objective": 2.0, "median": 1e-3},
            "b": {"objective": 2.2, "median": 2e-3},
        },
        "ahead": 2.0,
    }
    assert excess(row, "b") == pytest.approx(0.1)
    result = {"rows": {"noise": row}, "provenance": {"versions": {"b": "1.2"}}}
    assert markdown(result).splitlines() == [
        "| data | a | b 1.2 | ahead |",
        "| --- | --- | --- | --- |",
        "| noise | 1 ms | 2 ms | 2.00 |",
    ]
