"""Sums follow one binary tree over fixed leaves, for any number of threads and any aligned cut."""

import numpy as np
import pytest

from lloydformer.engines import instruction_set
from lloydformer.engines.native.installed import kernels

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
D, K = 3, 5
THREADS = (1, 2, 3, 7)
SIZES = ((64, 64 * 5 + 17), (64, 64 * 8), (100, 1234), (32, 32 * 131 + 1), (7, 7 * 70 + 3))
"""Rows of a leaf, and rows: up to more leaves than there are units of work."""


class Problem:
    """Points, weights and centers from a seed, and summaries of any range of the rows."""

    def __init__(self, n: int, leaf: int, dtype: type, weighted: bool) -> None:
        rng = np.random.default_rng(n)
        self.leaf = leaf
        self.points = rng.normal(size=(n, D)).astype(dtype)
        self.centers = self.points[:K].copy()
        self.weights = rng.uniform(0.1, 2.0, size=n) if weighted else None

    def summary(self, kernel: str, start: int, stop: int, n_threads: int = 1) -> np.ndarray:
        """All sums of a kernel over rows [start, stop), in one array."""
        weights = None if self.weights is None else self.weights[start:stop]
        session = kernels().Folds(
            self.points[start:stop], None, None, None, weights, False, 100.0, False, n_threads,
            0, self.leaf,
        )  # fmt: skip
        return KERNELS[kernel](self, session, stop - start)

    def tree(self, kernel: str, start: int, stop: int, leaves: int) -> np.ndarray:
        """The same by hand: sessions of so many leaves, merged by halves."""
        n_leaves = -(-(stop - start) // self.leaf)
        if n_leaves <= leaves:
            return self.summary(kernel, start, stop)
        half = 1 << ((n_leaves - 1).bit_length() - 1)
        middle = start + half * self.leaf
        left, right = (
            self.tree(kernel, a, b, leaves) for a, b in ((start, middle), (middle, stop))
        )
        return left + right

    def state(self, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        previous = np.full(n, np.iinfo(np.int32).min, dtype=np.int32)
        return np.full(n, -1, dtype=np.int32), previous, np.zeros(n, dtype=self.points.dtype)


def nearest(problem, session, n):
    labels, previous, _ = problem.state(n)
    sums, masses = np.zeros((K, D)), np.zeros(K)
    changed = session.run("nearest_sums", centers=problem.centers, labels=labels, previous=previous,
                          fresh=True, sums=sums, masses=masses)  # fmt: skip
    return np.concatenate([sums.ravel(), masses, [changed]])


def measure(problem, session, n):
    labels, previous, distances = problem.state(n)
    spread, masses = np.zeros(K), np.zeros(K)
    session.run("nearest_distances", centers=problem.centers, labels=labels, previous=previous,
                distances=distances, fresh=True, spread=spread, masses=masses)  # fmt: skip
    return np.concatenate([spread, masses])


def moments(problem, session, n):
    out = np.zeros(3 + D)
    session.run("moments", out=out)
    return out


def shares(problem, session, n):
    labels, previous, _ = problem.state(n)
    sums, masses, energy = np.zeros((K, D)), np.zeros(K), np.zeros(1)
    changed = session.run("soft_sums", centers=problem.centers, inverse_temperature=0.7,
                          labels=labels, previous=previous, sums=sums, masses=masses,
                          energy=energy)  # fmt: skip
    return np.concatenate([sums.ravel(), masses, energy, [changed]])


def within(problem, session, n):
    labels, previous, distances = problem.state(n)
    session.run("nearest_distances", centers=problem.centers, labels=labels, previous=previous,
                distances=distances, fresh=True, spread=np.zeros(K),
                masses=np.zeros(K))  # fmt: skip
    sums, masses, objective = np.zeros((K, D)), np.zeros(K), np.zeros(1)
    changed = session.run("trimmed_sums", labels=labels, previous=previous, distances=distances,
                          trimmed=np.zeros(n, dtype=bool), sums=sums, masses=masses,
                          radius=np.full(K, 1.5, distances.dtype), objective=objective)  # fmt: skip
    return np.concatenate([sums.ravel(), masses, objective, [changed]])


KERNELS = {"nearest": nearest, "measure": measure, "moments": moments, "shares": shares,
           "within": within}  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("leaf", "n"), SIZES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_all_rows_are_the_merged_sums_of_aligned_cuts(kernel, leaf, n, weighted, dtype):
    problem = Problem(n, leaf, dtype, weighted)
    whole = [problem.summary(kernel, 0, n, n_threads) for n_threads in THREADS]
    for leaves in (1, 2, 4):
        by_hand = problem.tree(kernel, 0, n, leaves)
        for found in whole:
            np.testing.assert_array_equal(found, by_hand)


@pytest.mark.parametrize("n_threads", THREADS)
def test_changes_of_a_second_iteration_do_not_depend_on_threads_or_bounds(n_threads):
    """With 40 clusters bounds are in use; leaves are not aligned with blocks of points."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(5000, 8)) + rng.integers(40, size=(5000, 1))
    found = []
    for threads, bounds in ((1, 0), (n_threads, 1 << 40)):
        session = kernels().Folds(
            points, None, None, None, None, False, 1e6, False, threads, bounds, 101
        )
        centers, looked_at = points[:40].copy(), []
        labels, previous = np.zeros(5000, dtype=np.int32), np.zeros(5000, dtype=np.int32)
        for step in range(12):
            sums, masses = np.zeros((40, 8)), np.zeros(40)
            session.run("nearest_sums", centers=centers, labels=labels, previous=previous,
                        fresh=step == 0, sums=sums, masses=masses)  # fmt: skip
            centers = np.where(masses[:, None] > 0, sums / masses[:, None], centers)
            looked_at.append(session.looked_at())
        found.append((sums, masses, labels, min(looked_at)))
    assert found[0][3] == 5000 > found[1][3]
    for one, other in zip(found[0][:3], found[1][:3], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"out: found nothing; pass \(3 \+ d\)"),
        ({"out": np.zeros(2)}, r"out: pass \(3 \+ d\) of float64; found \(2\) of float64"),
        ({"out": np.zeros(6, np.float32)}, r"out: pass .* of float64; found \(6\) of float32"),
        ({"out": 3}, r"out: pass .* found a number"),
        ({"out": np.zeros(12)[::2]}, "out: pass a C-contiguous NumPy array or a number"),
        (
            {"out": np.broadcast_to(0.0, 6).copy(), "other": 1},
            "other: moments does not take this argument",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_named(arguments, message):
    session = kernels().Folds(np.zeros((4, D)), None, None, None, None, False, 1.0, False, 1, 0, 32)
    with pytest.raises(ValueError, match=message):
        session.run("moments", **arguments)


def test_arrays_that_must_not_be_written_are_refused():
    session = kernels().Folds(np.zeros((4, D)), None, None, None, None, False, 1.0, False, 1, 0, 32)
    out = np.zeros(3 + D)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: pass an array that may be written"):
        session.run("moments", out=out)


def test_a_kernel_that_does_not_exist_is_named():
    session = kernels().Folds(np.zeros((4, D)), None, None, None, None, False, 1.0, False, 1, 0, 32)
    with pytest.raises(ValueError, match='kernel: found "sums", which does not exist'):
        session.run("sums")
