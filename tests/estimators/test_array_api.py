"""Arrays of other libraries stay what they are, and pipelines stay on the device."""

import numpy as np
import pytest
import sklearn
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lloydformer as lf
from lloydformer.estimators.registry import ALGORITHMS

strict = pytest.importorskip("array_api_strict")
NAMES = [*ALGORITHMS, "learned"]


def made(name):
    estimator = lf.LearnedKMeans if name == "learned" else ALGORITHMS[name].estimator
    return estimator(n_clusters=3, random_state=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_are_arrays_of_the_same_library(name, dtype, rng):
    X = rng.normal(size=(120, 4)).astype(dtype)
    weights = rng.integers(1, 4, size=120).astype("float64")
    given = strict.asarray(X)
    here = made(name).fit(X, sample_weight=weights)
    there = made(name).fit(given, sample_weight=strict.asarray(weights))
    pairs = [
        (there.labels_, here.labels_),
        (there.cluster_centers_, here.cluster_centers_),
        (there.predict(given), here.predict(X)),
        (there.transform(given), here.transform(X)),
        (there.distances_to_centers(given), here.distances_to_centers(X)),
        (there.fit_predict(given), here.fit_predict(X)),
    ]
    if hasattr(here, "predict_proba"):
        pairs.append((there.predict_proba(given), here.predict_proba(X)))
    for found, expected in pairs:
        assert type(found) is type(given)
        np.testing.assert_allclose(np.from_dlpack(found), expected, rtol=1e-5, atol=1e-5)
    assert there.score(given) == pytest.approx(here.score(X), rel=1e-6)


def test_arrays_of_every_kind_are_read(rng):
    X = rng.integers(-9, 9, size=(60, 3))
    here = lf.KMeans(3, random_state=0).fit(X)
    assert lf.KMeans(3, random_state=0).fit(strict.asarray(X)).inertia_ == here.inertia_
    flipped = strict.asarray(X.astype(float))[::-1, :]
    there = lf.KMeans(3, random_state=0).fit(flipped, sample_weight=strict.ones(60)[::-1])
    weighted = lf.KMeans(3, random_state=0).fit(X[::-1].astype(float), sample_weight=np.ones(60))
    assert there.inertia_ == weighted.inertia_


def test_an_array_that_cannot_be_read_says_so(rng):
    class Closed:
        def __array_namespace__(self):
            return strict

        def __dlpack__(self, **given):
            raise BufferError("closed")

        def __dlpack_device__(self):
            return 1, 0

    with pytest.raises(ValueError, match=r"cannot read \(closed\); pass one of NumPy or torch"):
        lf.KMeans(2).fit(Closed())


def test_complex_numbers_are_refused(rng):
    X = strict.asarray(rng.normal(size=(10, 2)) + 1j)
    with pytest.raises(ValueError, match=r"X: found a tensor .* torch.complex128; pass"):
        lf.KMeans(2).fit(X)


def test_more_rows_can_be_taken_in(rng):
    X = rng.normal(size=(90, 3))
    here, there = lf.KMeans(3, random_state=0), lf.KMeans(3, random_state=0)
    for part in (X[:60], X[60:]):
        here.partial_fit(part)
        there.partial_fit(strict.asarray(part))
    np.testing.assert_allclose(np.from_dlpack(there.cluster_centers_), here.cluster_centers_)


def test_models_are_saved_and_go_on(rng, tmp_path):
    X = strict.asarray(rng.normal(size=(90, 3)))
    model = lf.KMeans(3, random_state=0, warm_start=True, max_iter=2).fit(X)
    before = model.inertia_
    model.save_pretrained(tmp_path)
    found = lf.KMeans.from_pretrained(tmp_path)
    assert np.array_equal(found.predict(np.from_dlpack(X)), np.from_dlpack(model.predict(X)))
    assert model.fit(X).inertia_ <= before
    started = lf.KMeans(3, init=X[:3, :], n_init=1).fit(X)
    again = lf.KMeans(3, init=np.from_dlpack(X)[:3], n_init=1).fit(np.from_dlpack(X))
    assert started.inertia_ == again.inertia_


DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no GPU here")])]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_pipelines_stay_on_the_device(name, device, monkeypatch, rng):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X = torch.from_numpy(rng.normal(size=(200, 4))).to(device)
    with sklearn.config_context(array_api_dispatch=True):
        model = make_pipeline(StandardScaler(), made(name)).fit(X)
        found = [model.predict(X), model.transform(X), model[-1].labels_]
        found.append(model[-1].cluster_centers_)
    assert all(isinstance(part, torch.Tensor) and part.device.type == device for part in found)
