"""Fits that `tol` ends too early: `KMeans` warns, other rules are not misled by far rows."""

import warnings

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES, choose
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitContext, typical_variance

EARLY = "tol ended the fit"


# Four groups that touch each other, of which the first six rows are 10,000 times as far away as the
# others. They own the variance: 1e-4 of it is more than the whole spread of the others.
FAR = make_blobs(3000, 3, centers=5 * np.eye(4, 3), random_state=0)[0]
FAR[:6] *= 1e4
# The far rows and four others, all of one group: their centers have some way to go.
START = np.r_[FAR[:6], FAR[6:][np.argsort(FAR[6:, 0])[-4:]]]


def converged(start=START, **settings):
    return lf.KMeans(len(start), init=start, tol=0, max_iter=2000, **settings).fit(FAR)


@pytest.mark.parametrize("watched", [False, True])
def test_a_fit_that_the_tolerance_ends_while_the_objective_falls_warns(engine, watched):
    settings = {"engine": engine, "callback": (lambda progress: None) if watched else None}
    with pytest.warns(ConvergenceWarning, match=EARLY) as caught:
        model = lf.KMeans(10, init=START, **settings).fit(FAR)
    assert caught[0].filename == __file__
    assert model.inertia_ > 1.01 * converged().inertia_
    # The fall that the warning names is that of one more iteration.
    more = lf.KMeans(10, init=model.cluster_centers_, tol=0, max_iter=1).fit(FAR)
    before, after = more.objective_history_
    assert f"{1 - after / before:.2g} of its value" in str(caught[0].message)
    assert all(repair in str(caught[0].message) for repair in ("tol=0", "smaller tol", "scale"))


@pytest.mark.parametrize("kind", ["float32", "weighted", "sparse", "trimmed", "circuit"])
def test_it_warns_for_all_kinds_of_rows_and_for_other_plans_with_the_same_rule(kind):
    X, weights, model = FAR, None, lf.KMeans(10, init=START)
    if kind == "float32":
        X = FAR.astype(np.float32)
    elif kind == "weighted":
        weights = np.full(len(FAR), 1e-9)
    elif kind == "sparse":
        X = sparse.csr_matrix(FAR)
    elif kind == "trimmed":
        model = lf.TrimmedKMeans(10, init=START)
    elif kind == "circuit":
        model = lf.CircuitClusterer(10, recipe=lf.recipes.lloyd(), init=START)
    with pytest.warns(ConvergenceWarning, match=EARLY):
        model.fit(X, sample_weight=weights)


def test_the_warning_changes_no_result():
    with pytest.warns(ConvergenceWarning, match=EARLY):
        model = lf.KMeans(10, init=START).fit(FAR)
    short = lf.KMeans(10, init=START, max_iter=model.n_iter_).fit(FAR)  # max_iter: no warning
    np.testing.assert_array_equal(model.labels_, short.labels_)
    np.testing.assert_array_equal(model.cluster_centers_, short.cluster_centers_)
    np.testing.assert_array_equal(model.objective_history_, short.objective_history_)
    np.testing.assert_array_equal(model.labels_, model.predict(FAR))


@pytest.mark.parametrize(
    "settings", [{"tol": 0}, {"tol": 1e-12}, {"max_iter": 1}, {"batch_size": 500}]
)
def test_it_is_silent_where_another_rule_ends_the_fit(settings):
    lf.KMeans(10, init=START, **settings).fit(FAR)


def test_scaled_columns_are_the_repair_for_a_column_of_large_numbers():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=(2000, 2)), 1e5 * rng.integers(2, size=2000)]
    start = np.r_[X[:6], X[X[:, 2] > 0][:6]]
    with pytest.warns(ConvergenceWarning, match=EARLY):
        lf.KMeans(12, init=start).fit(X)
    unit = X.std(axis=0)
    lf.KMeans(12, init=start / unit).fit(X / unit)


@pytest.mark.parametrize("estimator", [lf.KMeans, lf.SphericalKMeans, lf.SoftKMeans])
def test_ordinary_data_are_silent(estimator):
    """Blobs, noise and whole numbers of all sizes; the best of several starts alone counts."""
    rng = np.random.default_rng(1)
    for number in range(150):
        n, d = int(rng.choice([5, 20, 200, 1000])), int(rng.choice([2, 3, 10, 30]))
        k = int(min(n, rng.choice([2, 5, 10, 50])))
        deviation = rng.choice([1.0, 0.05, 1e-3, 1e-6])
        X = [
            make_blobs(n, d, centers=k, cluster_std=deviation, random_state=number)[0],
            rng.normal(size=(n, d)),
            rng.random((n, d)),
            rng.integers(1, 10, size=(n, d)).astype(float),
        ][number % 4]
        start = str(rng.choice(["k-means++", "random"]))
        model = estimator(k, init=start, n_init=int(rng.choice([1, 3])), random_state=number)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Number of distinct clusters")
            model.fit(X)


def test_clusters_of_equal_rows_and_clusters_far_apart_are_silent():
    """Their first iteration may lower the objective to any fraction; no label changes after it."""
    X = np.repeat(np.arange(4.0), 5)[:, None] * [1e6, 0] + np.tile([[0, 1], [1, 0]], (10, 1))
    model = lf.KMeans(4, init=X[::5]).fit(X)
    assert model.n_iter_ == 1
    assert model.objective_history_[1] < 0.9 * model.objective_history_[0]
    lf.KMeans(20, init=FAR[:20] + 1e-9).fit(FAR[:20])


def test_relocating_kmeans_ends_where_lloyds_algorithm_does(engine):
    """Without relocations it is Lloyd's algorithm, with a rule that far rows do not mislead."""
    plain = lf.RelocatingKMeans(10, init=START, patience=0, engine=engine).fit(FAR)
    assert plain.inertia_ <= 1.001 * converged().inertia_
    model = lf.RelocatingKMeans(10, init=START, random_state=0, engine=engine).fit(FAR)
    more = converged(model.cluster_centers_, empty="keep")
    assert model.inertia_ <= 1.001 * more.inertia_


def test_relocating_kmeans_of_sparse_rows_has_the_same_rule():
    plain = lf.RelocatingKMeans(10, init=START, patience=0).fit(sparse.csr_matrix(FAR))
    assert plain.inertia_ <= 1.001 * converged().inertia_


@pytest.mark.parametrize("name", ["noise", "uniform", "blobs", "one column"])
def test_the_tolerance_of_ordinary_rows_is_that_of_scikit_learn(name, rng):
    X = {
        "noise": rng.normal(size=(500, 20)),
        "uniform": rng.random((500, 2)) + 100,
        "blobs": make_blobs(500, 5, centers=10, random_state=0)[0],
        "one column": rng.normal(size=(500, 1)),
    }[name]
    blocks = TensorBlocks(torch.from_numpy(X))
    for typical in (False, True):
        with choose("auto", blocks).open(blocks) as session:
            fit = FitContext.create(MeansPlan(), session, Rules(tol=0.01, typical=typical))
        assert fit.tolerance == pytest.approx(0.01 * X.var(axis=0).mean())


def test_the_typical_variance_is_a_median_of_rows_with_weight(engine):
    rows = torch.tensor([0.0, 3, 4, 100, 1e9, 1e9, 1e9], dtype=torch.float64)[:, None]
    weights = torch.tensor([1.0, 1, 1, 1, 1, 0, 0], dtype=torch.float64)
    blocks = TensorBlocks(rows, weights, given_origin=torch.zeros(1, dtype=torch.float64))
    with ENGINES[engine]().open(blocks) as session:
        assert typical_variance(session) == 32  # the power of two above 4^2
