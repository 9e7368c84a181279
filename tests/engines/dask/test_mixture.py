"""A mixture of a dask collection has the bits of the same rows in memory."""

import dask.array as da
import numpy as np
import pytest

import lloydformer as lf


@pytest.mark.parametrize("init", ["kmeans", "random"])
@pytest.mark.usefixtures("client")
def test_a_fit_on_workers_has_the_bits_of_one_in_memory(rows, init):
    rows = rows[:9000].astype(float)
    collection = da.from_array(rows, chunks=(2500, 5))
    options = {"n_components": 3, "init_params": init, "random_state": 0, "max_iter": 3, "tol": 1e9}
    model = lf.GaussianMixture(**options).fit(rows)
    on_workers = lf.GaussianMixture(**options).fit(collection)
    for name in ("weights_", "means_", "covariances_"):
        assert np.array_equal(getattr(on_workers, name), getattr(model, name)), name
    assert on_workers.lower_bound_ == model.lower_bound_
    assert np.array_equal(on_workers.labels_.compute(), model.labels_)
    shares = on_workers.predict_proba(collection).compute()
    np.testing.assert_allclose(shares, model.predict_proba(rows), atol=1e-12)
    assert on_workers.bic(collection) == model.bic(rows)
