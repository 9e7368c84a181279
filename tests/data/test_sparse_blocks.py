"""CSR matrices on a GPU beside the same matrices on the CPU."""

import numpy as np
import pytest
import torch
from scipy import sparse

import lloydformer as lf
from lloydformer.data.blocks import SparseBlocks
from lloydformer.data.canonical import canonical
from lloydformer.data.sparse_on_gpu import SparseOnGpu

DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no GPU here")])]  # fmt: skip


def matrix(rng, n=300, d=40, dtype=np.float32):
    values = rng.integers(-3, 6, size=(n, d)) * (rng.random((n, d)) < 0.15)
    values[7] = 0  # an empty row
    values[8:, 0] = 1 + values[8:, 0] ** 2  # the others have a direction
    return canonical(sparse.csr_matrix(values.astype(dtype)))


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
