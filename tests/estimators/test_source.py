"""Lists, any memory order, read-only arrays, maps of files, both precisions: nothing is changed."""

import numpy as np
import pytest
from scipy import sparse

import lloydformer as lf

ALL = {
    "kmeans": lf.KMeans,
    "relocating": lf.RelocatingKMeans,
    "soft": lf.SoftKMeans,
    "spherical": lf.SphericalKMeans,
    "trimmed": lf.TrimmedKMeans,
    "robust": lf.RobustKMeans,
    "medoids": lf.KMedoids,
    "circuit": lf.CircuitClusterer,
}
X = np.random.default_rng(1).normal(size=(40, 3)) + 3


@pytest.fixture(params=ALL)
def model(request):
    return ALL[request.param](3, init=X[:3], max_iter=15, random_state=0)


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.flags.writeable = False
    return X


def mapped(X: np.ndarray, folder) -> np.ndarray:
    np.save(folder / "points.npy", X)
    return np.load(folder / "points.npy", mmap_mode="r")


def test_every_container_gives_the_same(model, tmp_path):
    expected = model.fit(X).cluster_centers_
    for given in (X.tolist(), np.asfortranarray(X), read_only(X), mapped(X, tmp_path)):
        np.testing.assert_array_equal(model.fit(given).cluster_centers_, expected)
        np.testing.assert_array_equal(model.predict(given), model.predict(X))


def test_nothing_that_goes_in_is_changed(model):
    given, weights = X.copy(), np.linspace(0.1, 1, 40)
    model.set_params(init=X[:3].copy())
    model.fit(given, sample_weight=weights)
    model.transform(given)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(weights, np.linspace(0.1, 1, 40))
    np.testing.assert_array_equal(model.init, X[:3])


def test_single_precision_stays_single(model):
    model.fit(X.astype(np.float32))
    assert model.cluster_centers_.dtype == model.transform(X.astype(np.float32)).dtype == np.float32


def test_whole_numbers_become_doubles(model):
    whole = np.repeat(np.diag([1, 2, 3]), 4, axis=0)
    model.set_params(init=np.diag([1, 2, 3]))
    assert model.fit(whole).cluster_centers_.dtype == np.float64


def test_data_far_from_zero_lose_no_digit():
    """In single precision, 1e4 away: squares of the coordinates would have no digit left."""
    near = np.random.default_rng(2).integers(0, 512, size=(300, 2)) / 512
    model, far = (
        lf.KMeans(4, init=(near[:4] + at), tol=0).fit((near + at).astype(np.float32))
        for at in (0, 4096)
    )
    assert far.inertia_ == pytest.approx(model.inertia_, rel=1e-3)


def wide_indices(dense: np.ndarray) -> sparse.csr_matrix:
    """Indices of 64 bits, as SciPy makes them for matrices of 2^31 entries."""
    made = sparse.csr_matrix(dense)
    made.indices, made.indptr = made.indices.astype(np.int64), made.indptr.astype(np.int64)
    return made


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SoftKMeans, lf.SphericalKMeans])
@pytest.mark.parametrize(
    "container",
    [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix, wide_indices],
)
def test_sparse_equals_dense(kind, container):
    dense = np.where(np.random.default_rng(3).random(X.shape) < 0.5, 0, X)
    dense = dense[dense.any(axis=1)]
    one, two = (kind(3, init=dense[:3]).fit(given) for given in (dense, container(dense)))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(one.cluster_centers_, two.cluster_centers_, atol=1e-12)
    np.testing.assert_allclose(one.transform(dense), two.transform(container(dense)), atol=1e-7)
    np.testing.assert_array_equal(one.predict(dense), two.predict(container(dense)))
    if hasattr(one, "predict_proba"):
        shares = one.predict_proba(dense), two.predict_proba(container(dense))
        np.testing.assert_allclose(*shares, atol=1e-12)


@pytest.mark.parametrize("kind", [lf.KMeans, lf.SphericalKMeans])
def test_entries_that_are_stored_twice_count_twice(kind):
    """Such a matrix stands for the sum of its entries, and stays as it is."""
    rng = np.random.default_rng(0)
    stored = (rng.exponential(size=160), rng.integers(0, 5, size=160), np.arange(0, 161, 4))
    given = sparse.csr_matrix(stored, shape=(40, 5))
    one, two = (kind(3, init=given.toarray()[:3]).fit(X) for X in (given, given.toarray()))
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_allclose(one.transform(given), two.transform(given.toarray()), atol=1e-7)
    assert given.nnz == 160


@pytest.mark.parametrize("name", sorted(set(ALL) - {"kmeans", "relocating", "soft", "spherical"}))
def test_the_others_refuse_sparse_matrices(name):
    with pytest.raises(TypeError, match="Sparse data was passed"):
        ALL[name](3).fit(sparse.csr_matrix(X))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_numbers_that_are_none_are_refused(model, wrong):
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.fit(np.where(X[5, 1] == X, wrong, X))


def test_whole_numbers_as_parameters():
    """1 is as good as 1.0, and numpy's numbers as Python's."""
    assert lf.SoftKMeans(np.int64(2), inverse_temperature=1, tol=0).fit(X).inertia_ > 0
    assert lf.TrimmedKMeans(2, keep=1).fit(X).outliers_.size == 0
    assert lf.KMedoids(2, separation=10, max_iter=np.int32(3)).fit(X).n_iter_ == 3
    assert lf.RobustKMeans(2, inverse_temperature=np.float32(1)).fit(X).n_iter_ > 0
