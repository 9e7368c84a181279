"""EM of mixtures: equal to scikit-learn's, iteration by iteration, and worked by hand."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import bernoulli, multivariate_normal, poisson
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from lloydformer.algorithms import Mixture, MixtureState

KINDS = ("full", "tied", "diag", "spherical")


def problem(rng, n=200, d=3, k=4):
    """Rows of stretched clusters, and a start far from a fixed point."""
    own = rng.integers(0, k, n)
    axes = rng.normal(size=(k, d, d)) * 0.6 + np.eye(d)
    rows = rng.normal(0, 3, (k, d))[own] + np.einsum(
        "nd,nde->ne", rng.normal(size=(n, d)), axes[own]
    )
    weights, means = rng.dirichlet(np.full(k, 3.0)), rows[rng.choice(n, k, replace=False)]
    return rows, MixtureState(weights, means, np.stack([np.eye(d) * rows.var()] * k))


def as_theirs(covariances, kind):
    """Covariance matrices in the shape of scikit-learn's attribute."""
    shapes = {"tied": covariances[0], "diag": np.diagonal(covariances, axis1=1, axis2=2)}
    return shapes.get(kind, covariances[:, 0, 0] if kind == "spherical" else covariances)


def by_sklearn(rows, start, kind, n_iterations, reg_covar=1e-6):
    precisions = np.linalg.inv(start.covariances)
    model = GaussianMixture(
        len(start.means),
        covariance_type=kind,
        weights_init=start.weights,
        means_init=start.means,
        precisions_init=as_theirs(precisions, kind),
        max_iter=n_iterations,
        tol=0,
        reg_covar=reg_covar,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_every_iteration_is_scikit_learns(rng, kind):
    rows, start = problem(rng)
    for number, found in enumerate(Mixture(kind).run(rows, start, 8), start=1):
        theirs = by_sklearn(rows, start, kind, number)
        np.testing.assert_allclose(found.state.weights, theirs.weights_, atol=1e-10)
        np.testing.assert_allclose(found.state.means, theirs.means_, atol=1e-9)
        ours = as_theirs(found.state.covariances, kind)
        np.testing.assert_allclose(ours, theirs.covariances_, atol=1e-9)
        assert found.lower_bound == pytest.approx(theirs.lower_bound_, abs=1e-10)


@pytest.mark.parametrize("kind", [*KINDS, "shared", 0.5])
def test_the_likelihood_rises(rng, kind):
    rows, start = problem(rng)
    bounds = [found.lower_bound for found in Mixture(kind, regularisation=0.0).run(rows, start, 20)]
    assert np.diff(bounds[1:]).min() >= -1e-12


def test_densities_are_scipys(rng):
    rows, start = problem(rng, n=20)
    densities = [
        multivariate_normal(m, c).logpdf(rows)
        for m, c in zip(start.means, start.covariances, strict=True)
    ]
    expected = np.stack(densities, axis=1) + np.log(start.weights)
    np.testing.assert_allclose(Mixture().log_joint(rows, start), expected, atol=1e-10)


@pytest.mark.parametrize(("family", "known"), [("bernoulli", bernoulli), ("poisson", poisson)])
def test_other_families_by_their_definition(rng, family, known):
    means = rng.uniform(0.2, 0.8, (3, 4)) * (1 if family == "bernoulli" else 5)
    rows = known.rvs(means[rng.integers(0, 3, 100)], random_state=1).astype(float)
    start = MixtureState(np.array([0.2, 0.3, 0.5]), means)
    (found,) = Mixture(family=family).run(rows, start, 1)
    joint = start.weights * np.exp(known.logpmf(rows[:, None], means).sum(axis=2))
    shares = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.responsibilities, shares, atol=1e-12)
    np.testing.assert_allclose(found.state.weights, shares.mean(axis=0), atol=1e-12)
    expected = shares.T @ rows / shares.sum(axis=0)[:, None]
    np.testing.assert_allclose(found.state.means, expected, atol=1e-12)
    assert found.lower_bound == pytest.approx(np.log(joint.sum(axis=1)).mean())


@pytest.mark.parametrize("kind", [*KINDS, "shared"])
def test_a_weight_of_two_is_a_row_twice(rng, kind):
    rows, start = problem(rng, n=60)
    counts = rng.integers(0, 3, len(rows)).astype(float)
    counts[0] = 2
    weighted = Mixture(kind).run(rows, start, 5, counts)[-1]
    repeated = Mixture(kind).run(np.repeat(rows, counts.astype(int), axis=0), start, 5)[-1]
    np.testing.assert_allclose(weighted.state.means, repeated.state.means, atol=1e-12)
    np.testing.assert_allclose(weighted.state.weights, repeated.state.weights, atol=1e-12)
    np.testing.assert_allclose(weighted.state.covariances, repeated.state.covariances, atol=1e-12)
    assert weighted.lower_bound == pytest.approx(repeated.lower_bound)


def test_two_points_by_hand():
    """Each point has the density 1/sqrt(2 pi) at its own mean, and 0 elsewhere."""
    rows = np.array([[0.0], [100.0]])
    start = MixtureState(np.array([0.25, 0.75]), rows, np.ones((2, 1, 1)))
    (found,) = Mixture("diag", regularisation=0.5).run(rows, start, 1)
    assert found.state.weights.tolist() == [0.5, 0.5]
    assert found.state.means.tolist() == [[0.0], [100.0]]
    assert found.state.covariances.flatten().tolist() == [0.5, 0.5]
    log_density = -0.5 * math.log(2 * math.pi)
    expected = log_density + (math.log(0.25) + math.log(0.75)) / 2
    assert found.lower_bound == pytest.approx(expected)


def test_a_component_without_points_moves_to_those_it_explains_best():
    rows = np.array([[0.0], [1.0], [5.0]])
    start = MixtureState(np.full(2, 0.5), np.array([[1.0], [1e4]]), np.ones((2, 1, 1)))
    (found,) = Mixture("diag").run(rows, start, 1)
    assert found.responsibilities[:, 1].tolist() == [0, 0, 0]  # too small for a float
    assert found.state.means.tolist() == [[2.0], [5.0]]
    assert found.state.weights.tolist() == [1.0, 0.0]
    assert np.isfinite(Mixture("diag").run(rows, found.state, 3)[-1].lower_bound)
