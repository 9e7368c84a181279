"""A few rows far away do not end the fits of `lloydformer fit` early."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import lloydformer as lf
from lloydformer.app.jobs.fit.settings import FitSettings


def test_far_rows_do_not_end_a_fit_early(tmp_path):
    X = make_blobs(3000, 3, centers=5 * np.eye(4, 3), random_state=0)[0]
    X[:6] *= 1e4
    start = np.r_[X[:6], X[6:][np.argsort(X[6:, 0])[-4:]]]  # four centers in one of four groups
    np.save(tmp_path / "far.npy", X)
    settings = FitSettings(data=str(tmp_path / "far.npy"), clusters="10", start_centers=start)
    model = settings.model(10).fit(X)
    with pytest.warns(ConvergenceWarning, match="tol ended the fit"):
        assert lf.KMeans(10, init=start).fit(X).n_iter_ < model.n_iter_
    most = lf.KMeans(10, init=start, tol=0, max_iter=2000).fit(X)
    assert model.inertia_ <= 1.001 * most.inertia_
