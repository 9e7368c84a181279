"""KMedoids as an estimator: metrics, matrices, callables, sparse rows, and what it refuses."""

import kmedoids
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise_distances

import lloydformer as lf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)) + np.repeat(RNG.uniform(-4, 4, size=(3, 4)), 30, axis=0)
ENGINES = ("native", "chunked")


def chebyshev(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max())


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_matrix_of_distances(engine, dtype):
    distances = pairwise_distances(X).astype(dtype)
    model = lf.KMedoids(4, metric="precomputed", random_state=0, engine=engine).fit(distances)
    loss = distances[:, model.medoid_indices_].min(axis=1).sum()
    assert model.inertia_ == pytest.approx(loss, rel=1e-6)
    np.testing.assert_array_equal(model.predict(distances), model.labels_)
    assert -model.score(distances) == pytest.approx(model.inertia_, rel=1e-6)
    np.testing.assert_array_equal(model.transform(distances), distances[:, model.medoid_indices_])
    best = min(kmedoids.fasterpam(distances, 4, random_state=s).loss for s in range(5))
    assert model.inertia_ <= 1.05 * best
    assert (np.diff(model.objective_history_) <= 0).all()


def test_a_matrix_is_fitted_the_same_on_both_engines():
    distances = pairwise_distances(RNG.normal(size=(200, 5)))
    rows = [
        lf.KMedoids(6, metric="precomputed", random_state=1, engine=e).fit(distances)
        for e in ENGINES
    ]
    np.testing.assert_array_equal(rows[0].medoid_indices_, rows[1].medoid_indices_)


def test_a_callable_is_the_matrix_of_its_distances():
    model = lf.KMedoids(3, metric=chebyshev, random_state=0).fit(X)
    distances = pairwise_distances(X, metric="chebyshev")
    same = lf.KMedoids(3, metric="precomputed", random_state=0).fit(distances)
    np.testing.assert_array_equal(model.medoid_indices_, same.medoid_indices_)
    np.testing.assert_array_equal(model.cluster_centers_, X[model.medoid_indices_])
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_cosine_equals_dense(dtype):
    matrix = sparse.random(80, 60, 0.2, random_state=0, format="csr", dtype=dtype)
    matrix = matrix[np.diff(matrix.indptr) > 0]
    model = lf.KMedoids(5, metric="cosine", random_state=0)
    there = model.fit(matrix)
    rows, labels, loss = there.medoid_indices_, there.labels_, there.inertia_
    exact = pairwise_distances(matrix, metric="cosine")[:, rows].min(axis=1).sum()
    assert loss == pytest.approx(exact, rel=1e-5)
    np.testing.assert_array_equal(there.predict(matrix), labels)
    dense = model.fit(matrix.toarray())
    assert dense.inertia_ == pytest.approx(loss, rel=0.05)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "manhattan"])
def test_medoids_are_rows_to_the_last_bit(dtype, metric):
    points = (X + 1000).astype(dtype)
    model = lf.KMedoids(3, metric=metric, random_state=0).fit(points)
    np.testing.assert_array_equal(points[model.medoid_indices_], model.cluster_centers_)
    assert model.cluster_centers_.dtype == dtype


def test_transform_follows_the_metric():
    for metric in ("euclidean", "manhattan", "cosine"):
        model = lf.KMedoids(3, metric=metric, random_state=0).fit(X)
        expected = pairwise_distances(X, X[model.medoid_indices_], metric=metric)
        np.testing.assert_allclose(model.transform(X), expected, atol=1e-6)


@pytest.mark.parametrize("metric", ["sqeuclidean", "manhattan"])
def test_more_effort_is_not_worse_on_average(metric):
    points = np.random.default_rng(1).normal(size=(400, 6))
    losses = {
        effort: np.mean([
            lf.KMedoids(12, metric=metric, effort=effort, random_state=s).fit(points).inertia_
            for s in range(40)
        ])
        for effort in ("low", "high")
    }  # fmt: skip
    assert losses["high"] <= losses["low"]


def test_swaps_alone_end_in_a_local_optimum():
    model = lf.KMedoids(5, method="fasterpam", metric="manhattan", random_state=0).fit(X)
    distances = pairwise_distances(X, metric="manhattan")
    assert kmedoids.fasterpam(distances, model.medoid_indices_.astype(np.uint64)).n_swap == 0


def test_weights_count_as_rows():
    """A row of weight 3 three times: the same loss for the same medoids, and no medoid without."""
    weights = np.random.default_rng(2).integers(0, 4, size=90).astype(float)
    for metric in ("sqeuclidean", "manhattan", "precomputed"):
        data = pairwise_distances(X) if metric == "precomputed" else X
        model = lf.KMedoids(4, metric=metric, random_state=0).fit(data, sample_weight=weights)
        assert (weights[model.medoid_indices_] > 0).all()
        distances = data if metric == "precomputed" else pairwise_distances(X, metric=metric)
        least = distances[:, model.medoid_indices_].min(axis=1)
        assert model.inertia_ == pytest.approx(weights @ least)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", ["sqeuclidean", "manhattan"])
def test_rows_without_weight_are_no_medoids(engine, metric):
    """Each row without weight comes before an equal one with weight."""
    rows = np.array([[0.0], [0.0], [5.0], [5.0], [5.0], [9.0]])
    weights = np.array([0, 1, 0, 0, 1, 1.0])
    model = lf.KMedoids(3, metric=metric, random_state=0, engine=engine)
    model.fit(rows, sample_weight=weights)
    assert sorted(model.medoid_indices_) == [1, 4, 5]
    distances = pairwise_distances(rows)
    with pytest.raises(ValueError, match="row 2, whose weight is 0"):
        lf.KMedoids(2, metric="precomputed", init=[1, 2]).fit(distances, sample_weight=weights)


def test_equal_rows_and_as_many_clusters_as_rows():
    few = np.array([[0.0], [0.0], [1.0], [1.0], [2.0]])
    with pytest.warns(match="distinct clusters"):
        assert lf.KMedoids(5, random_state=0).fit(few).inertia_ == 0
    assert lf.KMedoids(3, random_state=0).fit(few).inertia_ == 0
    assert lf.KMedoids(1, metric="manhattan", random_state=0).fit(few).inertia_ == 4 - 1


def test_the_initial_rows_of_a_matrix():
    distances = pairwise_distances(X)
    model = lf.KMedoids(2, metric="precomputed", init=[3, 70]).fit(distances)
    assert model.objective_history_[0] == pytest.approx(distances[:, [3, 70]].min(axis=1).sum())


@pytest.mark.parametrize("engine", ENGINES)
def test_one_medoid_without_the_triangle_inequality(engine):
    """A row near to all others but one, which is farther than any from the first medoid."""
    distances = np.ones((20, 20))
    distances[1], distances[:, 1] = 0.1, 0.1
    distances[1, 2] = distances[2, 1] = 1000.0
    np.fill_diagonal(distances, 0)
    model = lf.KMedoids(1, metric="precomputed", init=[0], engine=engine).fit(distances)
    assert model.inertia_ == pytest.approx(distances.sum(axis=1).min())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_matrix_that_is_nearly_symmetric(engine):
    distances = 1 + 1e-5 * np.random.default_rng(0).random((60, 60))
    np.fill_diagonal(distances, 0)
    model = lf.KMedoids(5, metric="precomputed", random_state=0, engine=engine).fit(distances)
    mean = (distances + distances.T) / 2
    assert model.inertia_ == pytest.approx(mean[:, model.medoid_indices_].min(axis=1).sum())
    assert (np.diff(model.objective_history_) <= 0).all()


REFUSED = {
    "with method=.paper.": ({"method": "paper", "metric": "manhattan"}, X),
    "square matrix": ({"metric": "precomputed"}, X),
    "below 0": ({"metric": "precomputed"}, -np.ones((3, 3))),
    "symmetric": ({"metric": "precomputed"}, np.triu(np.ones((4, 4)), 1)),
    "different row numbers": ({"metric": "precomputed", "init": [0, 0]}, np.zeros((4, 4))),
    "n_samples=1": ({"metric": "precomputed"}, np.zeros((1, 1))),
    "direction": ({"metric": "cosine"}, np.zeros((4, 2))),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_be_clustered_is_refused(words):
    parameters, data = REFUSED[words]
    with pytest.raises(ValueError, match=words):
        lf.KMedoids(2, **parameters).fit(data)


def test_a_row_of_zeros_offers_only_parameters_that_there_are():
    rows = np.r_[X, np.zeros((1, 4))]
    with pytest.raises(ValueError, match=r"row 90, which has no direction; remove such rows$"):
        lf.KMedoids(2, metric="cosine").fit(rows)
    with pytest.raises(ValueError, match='or pass zero_rows="ignore"'):
        lf.SphericalKMeans(2).fit(rows)


def test_ctrl_c_keeps_the_medoids_so_far():
    def stop(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    model = lf.KMedoids(4, random_state=0, callback=stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X)
    squares = ((X[:, None] - X[model.medoid_indices_]) ** 2).sum(axis=2)
    assert model.inertia_ == pytest.approx(squares.min(axis=1).sum())
