"""Lloyd's algorithm, soft and spherical k-means, by hand and against scikit-learn."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from lloydformer.algorithms import Lloyd, LloydBinary, Soft, Spherical, run

POINTS = np.array([[0.0], [1.0], [5.0], [9.0]])


def test_by_hand():
    """0 | 1 5 9, means 0 and 5; then 0 1 | 5 9, means 0.5 and 7; then it does not change."""
    history = run(Lloyd(), POINTS, POINTS[:2], 3)
    assert history.labels.tolist() == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert history.centers[..., 0].tolist() == [[0, 1], [0, 5], [0.5, 7], [0.5, 7]]


@pytest.mark.parametrize("seed", range(5))
def test_one_iteration_equals_scikit_learns(seed):
    points = np.random.default_rng(seed).normal(size=(80, 3))
    theirs = KMeans(5, init=points[:5], n_init=1, max_iter=1, tol=0, algorithm="lloyd").fit(points)
    ours = run(Lloyd(), points, points[:5], 2)
    np.testing.assert_allclose(ours.centers[1], theirs.cluster_centers_, atol=1e-12)
    assert (ours.labels[1] == theirs.labels_).all()


def test_ties_go_to_the_first_or_are_shared():
    points, centers = np.array([[0.0], [2.0], [4.0]]), np.array([[0.0], [4.0]])
    first = run(Lloyd("first"), points, centers, 1)
    average = run(Lloyd("average"), points, centers, 1)
    assert first.assignments[0].tolist() == [[1, 0], [1, 0], [0, 1]]
    assert average.assignments[0].tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert first.centers[1].tolist() == [[1], [4]]
    assert average.centers[1].tolist() == [[0], [4]]


def test_a_cluster_of_shared_points_only_keeps_them():
    """Both centers are equal: every point is split, none is dropped."""
    history = run(Lloyd("average"), POINTS, np.array([[3.0], [3.0]]), 1)
    assert history.centers[1].tolist() == [[3.75], [3.75]]


def test_an_empty_cluster_moves_to_the_mean():
    history = run(Lloyd(), POINTS, np.array([[0.0], [100.0]]), 1)
    assert history.centers[1].tolist() == [[3.75], [3.75]]


def test_an_empty_cluster_with_binary_codes_moves_to_similar_codes():
    """Cluster 2 (binary 10) is empty: 0 (00) is one digit away, as 3 (11) is; 1 (01) is two."""
    points = np.array([[0.0], [10.0], [30.0]])
    centers = np.array([[0.0], [10.0], [1000.0], [30.0]])
    weights = LloydBinary().weigh(points, centers, np.eye(4)[[0, 1, 3]], 0)
    assert weights.tolist() == [[1, 0, 0], [0, 1, 0], [0.5, 0, 0.5], [0, 0, 1]]


def test_inputs_are_not_changed():
    points, centers = POINTS.copy(), POINTS[:2].copy()
    run(Lloyd(), points, centers, 2)
    assert (points == POINTS).all()
    assert (centers == POINTS[:2]).all()


def test_the_mean_is_exact_far_from_the_origin():
    points = np.array([[0.0], [1.0], [2.0]]) + 1e9
    assert run(Lloyd(), points, points[:1], 1).centers[1].item() == 1e9 + 1


def test_soft_by_hand():
    """exp(-gamma d^2) with gamma = log 2: distances 0 and 1 weigh 1 and 1/2."""
    history = run(Soft(np.log(2)), np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]), 1)
    np.testing.assert_allclose(history.assignments[0], [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(history.centers[1], [[1 / 3], [2 / 3]])


def test_soft_is_a_gaussian_mixture_with_equal_weights_and_fixed_spheres(rng):
    points = rng.normal(size=(40, 2))
    mixture = GaussianMixture(3, covariance_type="spherical", means_init=points[:3])
    mixture.weights_, mixture.means_ = np.full(3, 1 / 3), points[:3]
    mixture.precisions_cholesky_ = np.full(3, np.sqrt(2 * 0.7))  # gamma = 1 / (2 sigma^2)
    np.testing.assert_allclose(
        Soft(0.7).assign(points, points[:3]), mixture.predict_proba(points), atol=1e-12
    )


def test_spherical_by_hand():
    """(1, 0) and (0, 1) together point along the diagonal."""
    points = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    history = run(Spherical(), points, np.array([[0.6, 0.8], [-1.0, 0.0]]), 1)
    assert history.labels.tolist() == [[0, 0, 1]]
    np.testing.assert_allclose(history.centers[1], [[0.5**0.5, 0.5**0.5], [-1, 0]])
