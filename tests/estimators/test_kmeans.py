"""KMeans against sklearn.cluster.KMeans from the same start: continuous data, then ties."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn import cluster
from sklearn.exceptions import ConvergenceWarning

import lloydformer as lf

FEW, MANY = range(40), range(200)
FAR = 1e3


@dataclass(frozen=True)
class Problem:
    """Points with an array of initial centers; some of these may be far from every point."""

    X: np.ndarray
    init: np.ndarray
    weights: np.ndarray | None
    csr: bool

    def fit(self, kind, dtype=np.float64, **rules):
        X, init = self.X.astype(dtype), self.init.astype(dtype)
        X = sparse.csr_matrix(X) if self.csr else X
        model = kind(len(init), init=init, n_init=1, **rules)
        return model.fit(X, sample_weight=self.weights)

    def both(self, engine, dtype=np.float64, **rules):
        ours = partial(lf.KMeans, engine=engine)
        return self.fit(ours, dtype, **rules), self.fit(cluster.KMeans, dtype, **rules)

    @property
    def n_far(self) -> int:
        return int((np.abs(self.init) > FAR / 2).any(axis=1).sum())


def continuous(number: int) -> Problem:
    """Blobs or one cloud; every second has weights, every third is sparse, some centers far."""
    rng = np.random.default_rng([number, 3])
    n, d, k = rng.integers(20, 400), rng.integers(1, 20), rng.integers(2, 13)
    X = rng.normal(size=(n, d)) + rng.uniform(-8, 8, size=(5, d))[rng.integers(5, size=n)]
    csr = number % 3 == 0
    if csr:
        X[rng.random(X.shape) < 0.5] = 0.0
    init = X[rng.choice(n, size=k, replace=False)].copy()
    init[: number % 4] += FAR  # these lose all their points, or have none
    return Problem(X, init, rng.uniform(0.1, 3, size=n) if number % 2 else None, csr)


def tied(number: int) -> Problem:
    """Whole numbers, many of them twice; a mean of 2^m of them is exact, so ties stay ties."""
    rng = np.random.default_rng([number, 4])
    n, d, k = 2 ** rng.integers(4, 8), rng.integers(1, 4), rng.integers(2, 6)
    X = rng.integers(-3, 4, size=(n, d)).astype(float)
    distinct = np.unique(X, axis=0)
    init = distinct[rng.choice(len(distinct), size=min(k, len(distinct)), replace=False)]
    return Problem(X, init, None, csr=number % 3 == 0)


def renumbered(labels: np.ndarray) -> np.ndarray:
    """Clusters numbered in the order of their first points."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return first.argsort().argsort()[inverse]


def check_doubles(number: int, engine: str) -> None:
    """Which of several empty clusters takes which far point is arbitrary in scikit-learn."""
    problem = continuous(number)
    ours, theirs = problem.both(engine)
    same = renumbered if problem.n_far > 1 else np.asarray
    np.testing.assert_array_equal(same(ours.labels_), same(theirs.labels_))
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)


def check_singles(numbers: range, engine: str) -> None:
    equal, count = 0, 0
    for number in numbers:
        problem = continuous(number)
        ours, theirs = problem.both(engine, np.float32)
        assert ours.cluster_centers_.dtype == np.float32
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-4), number
        same = renumbered if problem.n_far > 1 else np.asarray
        equal += (same(ours.labels_) == same(theirs.labels_)).sum()
        count += len(problem.X)
    assert equal >= 0.999 * count


def check_ties(numbers: range, engine: str) -> None:
    """Where a point is equally near to two centers, their algorithms differ from each other."""
    ratios = []
    for number in numbers:
        ours, theirs = tied(number).both(engine, max_iter=1, tol=0)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9), number
        ours, theirs = tied(number).both(engine)
        ratios.append((ours.inertia_ + 1) / (theirs.inertia_ + 1))
    assert np.mean(ratios) <= 1.001


@pytest.mark.parametrize("number", FEW)
def test_doubles(number, engine):
    check_doubles(number, engine)


def test_singles(engine):
    check_singles(FEW, engine)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ties(engine):
    check_ties(FEW, engine)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_many_problems(engine):
    for number in MANY:
        check_doubles(number, engine)
    check_singles(MANY, engine)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_ties_in_many_problems(engine):
    check_ties(MANY, engine)


def test_the_problems_have_weights_empty_clusters_and_both_kinds_of_arrays():
    problems = [continuous(number) for number in FEW]
    assert {p.n_far for p in problems} == {0, 1, 2, 3}
    assert {(p.weights is None, p.csr) for p in problems} == {
        (a, b) for a in (True, False) for b in (True, False)
    }


def test_duplicates_leave_fewer_clusters_than_asked_for():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\).*n_clusters \(3\)"):
        assert lf.KMeans(3, random_state=0).fit(X).inertia_ == 0
