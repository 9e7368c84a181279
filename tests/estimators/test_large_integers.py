"""Integers that kernels cannot hold are refused by name, and never cut off."""

import numpy as np
import pytest

import lloydformer as lf
from lloydformer.estimators import ALGORITHMS

X = np.random.default_rng(0).normal(size=(40, 2))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_max_iter_beyond_64_bits_is_refused(algorithm):
    model = ALGORITHMS[algorithm].estimator(2, max_iter=10**30)
    with pytest.raises(ValueError, match=r"'max_iter' parameter .* Got 1000000"):
        model.fit(X)


@pytest.mark.parametrize("parameter", ["n_moved", "n_draws"])
def test_draws_beyond_32_bits_are_refused(parameter):
    model = lf.RelocatingKMeans(2, search_options={parameter: 2**32 + 3})
    with pytest.raises(ValueError, match=rf"found 4294967299 for '{parameter}'; pass"):
        model.fit(X)


def test_a_batch_with_a_large_max_iter_stops_by_itself():
    found = lf.fit_batch(X[None], 2, max_iter=2**40, random_state=0)
    assert np.array_equal(found.labels, lf.fit_batch(X[None], 2, random_state=0).labels)
    with pytest.raises(ValueError, match=r"max_iter: found 1.*; pass an integer below"):
        lf.fit_batch(X[None], 2, max_iter=10**30)
