"""Timing of contenders, and their objectives."""

import numpy as np
import pytest
from scipy import sparse

from lloydformer.app.jobs.bench import measure as measuring
from lloydformer.app.jobs.bench.cases import draw_mixture, draw_rows
from lloydformer.app.jobs.bench.measure import (
    BenchCase,
    BenchProblem,
    Contender,
    Fitted,
    measure,
    objective,
)


class Clockwork:
    """A simulated clock: contenders take the given times."""

    now = 0.0


def clockwork(name, package, times, clock, n_iter=10, works=("fit",)):
    """Return a contender whose calls take the given times, and are written to the clock's list."""
    times = iter(times)

    def prepare(problem):
        def call(seed):
            clock.append((name, seed))
            Clockwork.now += next(times)
            return Fitted(problem.start, n_iter)

        return call

    return Contender(name, package, dict.fromkeys(works, prepare))


@pytest.fixture
def clock(monkeypatch):
    Clockwork.now = 0.0
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: Clockwork.now)
    return []


def problem(n=200, d=3, k=4, **settings):
    points = draw_mixture(n, d, k, seed=0)
    return BenchProblem(
        points, k, draw_rows(points, k, seed=1), **{"max_iter": 20, "tol": 0.0, **settings}
    )


def test_samples_are_taken_in_turns_and_divided_by_iterations(clock):
    ours = clockwork("a", "ours", [9, 9, 1, 3, 2], clock)
    peer = clockwork("b", "theirs", [9, 9, 4, 4, 8], clock)
    row = measure(BenchCase("case", problem), [ours, peer], "iteration", repeats=3)
    assert [name for name, _ in clock[4:]] == ["a", "b", "b", "a", "a", "b"]
    a, b = row["contenders"]["a"], row["contenders"]["b"]
    assert (a["median"], a["fastest"], a["slowest"]) == pytest.approx((0.2, 0.1, 0.3))
    assert a["quartiles"] == pytest.approx([0.15, 0.25])
    assert b["times"] == pytest.approx(2.0)
    assert row["ahead"] == pytest.approx(2.0)
    assert a["n_iter"] == 10


def test_another_engine_of_the_same_package_is_not_a_peer(clock):
    ours = clockwork("a", "ours", [1] * 4, clock)
    other = clockwork("chunked", "ours", [1, 1, 5, 5], clock)
    row = measure(BenchCase("case", problem), [ours, other], "fit", repeats=2)
    assert row["contenders"]["chunked"]["times"] == pytest.approx(5.0)
    assert row["ahead"] is None


def test_short_fits_are_repeated_in_a_sample(clock):
    quick = clockwork("a", "ours", [1, 0.01] + [0.01] * 20, clock)
    row = measure(BenchCase("case", problem), [quick], "fit", repeats=2)
    assert row["contenders"]["a"]["fits"] == 20
    assert [seed for _, seed in clock[2:]] == list(range(20))  # each with a seed of its own


def test_objective_equals_one_by_hand_also_far_from_the_origin():
    points = np.array([[0, 0], [2, 0], [10, 1]], dtype=np.float32)
    centers = np.array([[1, 0], [10, 0]], dtype=np.float32)
    assert objective(points, Fitted(centers, 1)) == pytest.approx(3.0)
    assert objective(points + 4096, Fitted(centers + 4096, 1)) == pytest.approx(3.0)
    assert objective(sparse.csr_matrix(points), Fitted(centers, 1)) == pytest.approx(3.0)


def test_a_far_row_takes_no_digits_from_the_objective():
    points = np.array([[0, 0], [2, 0], [1e9, 3e9]], dtype=np.float32)
    centers = np.array([[1, 0], [1e9, 3e9]], dtype=np.float32)
    for output in (None, np.array([0, 0, 1])):
        assert objective(points, Fitted(centers, 1, output)) == pytest.approx(2.0)


def test_objective_of_labels_and_of_distances_is_that_of_what_was_returned():
    points = np.array([[0, 0], [2, 0], [10, 1]], dtype=np.float32)
    centers = np.array([[1, 0], [10, 0]], dtype=np.float32)
    labels = np.array([0, 0, 0], dtype=np.int32)  # the last one is wrong
    assert objective(points, Fitted(centers, 1, labels)) == pytest.approx(2 + 81 + 1)
    distances = np.array([[1, 9], [3, 8], [9, 2]], dtype=np.float32)
    assert objective(points, Fitted(centers, 1, distances)) == pytest.approx(1 + 9 + 4)


def test_a_case_has_only_contenders_that_do_its_work(clock):
    ours = clockwork("a", "a", [1] * 4, clock)
    peer = clockwork("b", "b", [1] * 4, clock, works=("predict",))
    row = measure(BenchCase("case", problem), [ours, peer], "fit", repeats=2)
    assert list(row["contenders"]) == ["a"]
