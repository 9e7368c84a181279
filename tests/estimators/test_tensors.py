"""Tensors in, tensors out: same dtype, same device, no gradient."""

import numpy as np
import pytest
import torch

import lloydformer as lf

KINDS = [
    lf.KMeans, lf.SoftKMeans, lf.SphericalKMeans, lf.TrimmedKMeans, lf.RobustKMeans, lf.KMedoids,
    lf.RelocatingKMeans, lf.CircuitClusterer,
]  # fmt: skip
X = torch.from_numpy(np.random.default_rng(1).normal(size=(40, 3)))
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device"))]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_dtype_and_device_come_back(kind, dtype, device):
    points = X.to(device, dtype)
    model = kind(3, init=points[:3], max_iter=5, random_state=0).fit(points)
    assert model.cluster_centers_.dtype == dtype
    assert model.transform(points).dtype == dtype
    for found in (model.cluster_centers_, model.labels_, model.predict(points)):
        assert isinstance(found, torch.Tensor)
        assert found.device == points.device


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_and_arrays_give_the_same(kind):
    weights = torch.linspace(0.5, 2, 40).double()
    one = kind(3, init=X[:3], max_iter=5, random_state=0).fit(X, sample_weight=weights)
    two = kind(3, init=X[:3].numpy(), max_iter=5, random_state=0).fit(
        X.numpy(), sample_weight=weights.numpy()
    )
    np.testing.assert_array_equal(one.labels_.numpy(), two.labels_)
    np.testing.assert_array_equal(one.cluster_centers_.numpy(), two.cluster_centers_)


@pytest.mark.parametrize("kind", KINDS)
def test_points_that_require_gradients_are_only_looked_at(kind):
    points = X.clone().requires_grad_()
    model = kind(3, init=points[:3], max_iter=5, random_state=0).fit(points)
    assert not model.cluster_centers_.requires_grad
    assert torch.equal(points.detach(), X)


def test_what_belongs_to_trimmed_and_medoids_and_soft_are_tensors_too():
    assert isinstance(lf.TrimmedKMeans(2, keep=0.5).fit(X).outliers_, torch.Tensor)
    medoids = lf.KMedoids(2, max_iter=3, random_state=0).fit(X)
    assert torch.equal(X[medoids.medoid_indices_], medoids.cluster_centers_)
    shares = lf.SoftKMeans(2).fit(X).predict_proba(X)
    assert torch.allclose(shares.sum(dim=1), torch.ones(40).double())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_becomes_float32(dtype):
    halves = X.to(dtype)
    model, same = (lf.KMeans(3, random_state=0).fit(x) for x in (halves, halves.float()))
    assert model.cluster_centers_.dtype == torch.float32
    assert torch.equal(model.cluster_centers_, same.cluster_centers_)
    assert torch.equal(model.predict(halves), same.labels_)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [(X[0], "shape"), (X + 1j, "dtype"), (X / 0, "NaN or infinity")],
)
def test_tensors_that_are_no_points_are_refused(wrong, word):
    with pytest.raises(ValueError, match=f"^X: found.*{word}"):
        lf.KMeans(2).fit(wrong)


def test_another_number_of_features_is_refused():
    with pytest.raises(ValueError, match="X has 2 features, but KMeans is expecting 3 features"):
        lf.KMeans(2).fit(X).predict(X[:, :2])


@pytest.mark.parametrize(("n", "d", "name"), [(0, 3, "sample"), (5, 0, "feature")])
def test_tensors_without_rows_or_columns_are_refused(n, d, name):
    with pytest.raises(ValueError, match=name):
        lf.KMeans(1).fit(torch.zeros(n, d))
