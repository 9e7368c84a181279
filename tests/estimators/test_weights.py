"""Weight 2 is the point twice, weight 0 its absence: every estimator, from the same start."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone

import lloydformer as lf
from lloydformer.circuits.activations import TopK

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 3)) + RNG.uniform(-4, 4, size=(4, 3))[np.arange(60) % 4] + 1
COUNTS = RNG.integers(0, 4, size=60)
COUNTS[:4] = 1
ESTIMATORS = {
    "kmeans": lf.KMeans(),
    "soft": lf.SoftKMeans(inverse_temperature=0.3),
    "spherical": lf.SphericalKMeans(),
    "trimmed": lf.TrimmedKMeans(keep=0.8),
    "robust": lf.RobustKMeans(inverse_temperature=0.02),
    "robust, softmax": lf.RobustKMeans(inverse_temperature=0.2, activation="softmax"),
    "robust, top": lf.RobustKMeans(inverse_temperature=0.2, activation=TopK(6)),
    "circuit": lf.CircuitClusterer(recipe=lf.recipes.lloyd_dot()),
}


@pytest.fixture(params=ESTIMATORS)
def model(request, engine):
    return clone(ESTIMATORS[request.param]).set_params(
        n_clusters=4, init=X[:4], tol=0.0, max_iter=6, engine=engine
    )


def test_a_weight_is_so_many_points(model):
    weighted = model.fit(X, sample_weight=COUNTS.astype(float))
    centers, inertia, labels = weighted.cluster_centers_, weighted.inertia_, weighted.labels_
    repeated = model.fit(np.repeat(X, COUNTS, axis=0))
    np.testing.assert_allclose(centers, repeated.cluster_centers_, atol=1e-9)
    np.testing.assert_array_equal(np.repeat(labels, COUNTS), repeated.labels_)
    assert inertia == pytest.approx(repeated.inertia_, rel=1e-9)


def test_a_weight_of_zero_is_absence(model):
    there = RNG.random(60) < 0.6
    there[:4] = True
    weighted = model.fit(X, sample_weight=there.astype(float))
    centers, n_iter = weighted.cluster_centers_, weighted.n_iter_
    without = model.fit(X[there])
    np.testing.assert_allclose(centers, without.cluster_centers_, atol=1e-9)
    assert n_iter == without.n_iter_


def test_weights_of_one_are_no_weights(model):
    with_ones = model.fit(X, sample_weight=np.ones(60)).cluster_centers_
    np.testing.assert_allclose(with_ones, model.fit(X).cluster_centers_, atol=1e-12)


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SphericalKMeans])
def test_sparse_rows_are_weighted_too(kind):
    one = kind(4, init=X[:4], tol=0.0).fit(sparse.csr_matrix(X), sample_weight=COUNTS)
    two = kind(4, init=X[:4], tol=0.0).fit(np.repeat(X, COUNTS, axis=0))
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-9)


@pytest.mark.parametrize("name", ["kmeans", "soft", "spherical", "trimmed"])
def test_the_scale_of_weights_does_not_matter(name):
    model = clone(ESTIMATORS[name]).set_params(n_clusters=4, init=X[:4], tol=0.0, max_iter=6)
    centers = model.fit(X, sample_weight=COUNTS).cluster_centers_
    again = model.fit(X, sample_weight=7.5 * COUNTS).cluster_centers_
    np.testing.assert_allclose(centers, again, atol=1e-9)


def test_but_to_robust_sparsemax_it_does():
    """The threshold solves sum w (z - t)_+ = 1: more weight, a narrower cluster."""
    model = lf.RobustKMeans(4, inverse_temperature=0.02, init=X[:4], max_iter=6)
    centers = model.fit(X, sample_weight=np.ones(60)).cluster_centers_
    assert (
        np.abs(centers - model.fit(X, sample_weight=np.full(60, 9.0)).cluster_centers_).max() > 0.01
    )


def medoids(seed=0, **how):
    return lf.KMedoids(init=how.pop("init", X[:4]), random_state=seed, **how)


def test_medoids_without_weight_at_the_end_are_not_there():
    """Rows keep their numbers, and so their noise."""
    longer = np.concatenate([X, X[:20] + 0.5])
    weights = np.concatenate([np.ones(60), np.zeros(20)])
    one = medoids(n_clusters=4, max_iter=20).fit(longer, sample_weight=weights)
    two = medoids(n_clusters=4, max_iter=20).fit(X)
    np.testing.assert_array_equal(one.medoid_indices_, two.medoid_indices_)
    assert one.inertia_ == pytest.approx(two.inertia_)


def test_medoids_with_weight_two_are_drawn_as_if_there_twice():
    """Points 0, 1 and 1/2 about 1/2: draws in proportion to w exp(-d^2)."""
    points, weights = np.array([[0.0], [1.0], [0.5]]), np.array([2.0, 1.0, 1.0])
    drawn = [
        medoids(seed, method="paper", n_clusters=1, init=[[0.5]], max_iter=1, return_last=True)
        .fit(points, sample_weight=weights)
        .medoid_indices_.item()
        for seed in range(150)
    ]
    expected = weights * np.exp(-((points[:, 0] - 0.5) ** 2))
    counts = np.bincount(drawn, minlength=3)
    assert stats.chisquare(counts, 150 * expected / expected.sum()).pvalue > 0.01


@pytest.mark.parametrize(
    ("wrong", "word"), [(np.full(60, -1.0), "[Nn]egative"), (np.zeros(60), "at least one non-zero")]
)
def test_wrong_weights_are_refused(model, wrong, word):
    with pytest.raises(ValueError, match=word):
        model.fit(X, sample_weight=wrong)
