"""CSR matrices: canonical form, and blocks on a GPU beside the same blocks on the CPU."""

import numpy as np
import pytest
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer.data.sparse_blocks import SparseBlocks, SparseOnGpu, canonicalise_csr

GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here"),
]
DEVICES = ["cpu", pytest.param("cuda", marks=GPU)]


def matrix(rng, n=300, d=40, dtype=np.float32):
    values = rng.integers(-3, 6, size=(n, d)) * (rng.random((n, d)) < 0.15)
    values[7] = 0  # an empty row
    values[8:, 0] = 1 + values[8:, 0] ** 2  # the others have a direction
    return canonicalise_csr(sparse.csr_matrix(values.astype(dtype)))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("directions", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_those_of_the_sparse_matrix(device, directions, dtype, rng):
    X = matrix(rng, dtype=dtype)
    weights = torch.from_numpy(rng.random(300))
    here = SparseBlocks(X, weights, 64, directions)
    there = SparseOnGpu(X, weights.to(device), 64, directions, device=torch.device(device))
    assert there.layout.device.type == device
    assert torch.equal(there.ends.cpu(), here.ends)
    for start, stop in [(0, 64), (5, 9), (256, 300), (7, 8)]:
        every = torch.arange(stop - start)
        expected = here.read(start, stop).take(every)
        found = there.read(start, stop).take(every.to(device)).cpu()
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
        assert torch.equal(there.zero_rows(start, stop).cpu(), here.zero_rows(start, stop))
        assert torch.equal(there.weights(start, stop).cpu(), here.weights(start, stop))
    rows = torch.tensor([3, 299, 3, 0])
    assert torch.equal(there.take(rows.to(device)).cpu(), here.take(rows))
    some = there.subset(rows.to(device))
    assert torch.equal(some.read(0, 4).take(torch.arange(4, device=device)).cpu(), here.take(rows))


ALGORITHMS = {
    "kmeans": lambda **given: lf.KMeans(4, random_state=0, **given),
    "parallel": lambda **given: lf.KMeans(4, random_state=0, init="k-means||", **given),
    "batches": lambda **given: lf.KMeans(4, random_state=0, batch_size=64, **given),
    "soft": lambda **given: lf.SoftKMeans(4, random_state=0, **given),
    "spherical": lambda **given: lf.SphericalKMeans(4, random_state=0, **given),
    "trimmed": lambda **given: lf.TrimmedKMeans(4, random_state=0, **given),
    "robust": lambda **given: lf.RobustKMeans(4, random_state=0, **given),
    "relocating": lambda **given: lf.RelocatingKMeans(4, random_state=0, **given),
    "learned": lambda **given: lf.LearnedKMeans(4, random_state=0, **given),
    "medoids": lambda **given: lf.KMedoids(4, random_state=0, metric="cosine", **given),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_fitted_models_take_sparse_rows_on_the_chunked_engine(name, rng):
    X, model = matrix(rng)[8:], ALGORITHMS[name](engine="chunked")
    if not model._accepts_sparse:
        pytest.skip("it takes no sparse matrices")
    model.fit(X)
    assert model.predict(X).shape == (292,)
    assert model.transform(X).shape == (292, 4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_fits_are_those_on_the_cpu(name, rng):
    X = matrix(rng, 2000, 30, np.float64)[8:]
    if not ALGORITHMS[name]()._accepts_sparse:
        pytest.skip("it takes no sparse matrices")
    here = ALGORITHMS[name](engine="chunked").fit(X)
    there, again = (ALGORITHMS[name](device="cuda").fit(X) for _ in range(2))
    assert np.array_equal(there.cluster_centers_, again.cluster_centers_)
    assert np.array_equal(there.labels_, again.labels_)
    np.testing.assert_allclose(there.inertia_, here.inertia_, rtol=1e-6)
    np.testing.assert_allclose(there.cluster_centers_, here.cluster_centers_, atol=1e-5)
    assert isinstance(there.cluster_centers_, np.ndarray)
    assert np.mean(there.predict(X) == here.predict(X)) > 0.97  # whole numbers: there are ties
    np.testing.assert_allclose(there.transform(X), here.transform(X), atol=1e-5)


def small_matrix(columns, starts=(0, 2, 4), index="int32") -> sparse.csr_matrix:
    """Four entries in two rows of three columns, whatever the arrays say."""
    made = sparse.csr_matrix((np.arange(1.0, 5.0), [0, 1, 0, 1], [0, 2, 4]), shape=(2, 3))
    made.indices, made.indptr = np.array(columns, dtype=index), np.array(starts, dtype=index)
    return made


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_a_canonical_matrix_is_not_copied(index):
    given = small_matrix([0, 2, 1, 2], index=index)
    assert canonicalise_csr(given) is given


@pytest.mark.parametrize("columns", [[2, 0, 1, 2], [1, 1, 0, 0], [2, 2, 1, 0]])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_others_are_sorted_and_added_in_a_copy(columns, index):
    given = small_matrix(columns, index=index)
    made = canonicalise_csr(given)
    np.testing.assert_array_equal(made.toarray(), given.toarray())
    np.testing.assert_array_equal(given.indices, columns)
    for start, stop in zip(made.indptr, made.indptr[1:], strict=False):
        assert (np.diff(made.indices[start:stop]) > 0).all()


def test_what_scipy_remembers_is_not_believed():
    given = small_matrix([0, 2, 1, 2])
    assert given.has_canonical_format
    given.indices[:2] = 1
    made = canonicalise_csr(given)
    assert made.nnz == 3
    assert made[0, 1] == 3


@pytest.mark.parametrize(
    ("columns", "starts", "words"),
    [
        ([0, 1, 0, 3], (0, 2, 4), "column 3 in a CSR matrix of 3 columns"),
        ([0, -1, 0, 1], (0, 2, 4), "column -1"),
        ([0, 1, 0, 1], (0, 2, 5), "indptr"),
        ([0, 1, 0, 1], (0, 3, 2), "indptr"),
        ([0, 1, 0, 1], (1, 2, 4), "indptr"),
    ],
)
def test_arrays_that_are_no_matrix_are_refused(columns, starts, words):
    with pytest.raises(ValueError, match=words):
        canonicalise_csr(small_matrix(columns, starts))
