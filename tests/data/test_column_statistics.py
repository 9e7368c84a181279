"""Minimum and maximum of the columns."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.data.extent import extent

X = np.random.default_rng(0).normal(size=(70_000, 3)) * [1.0, 10.0, 100.0] + 5


@pytest.mark.parametrize("n", [1, 5, 1 << 16, 70_000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ends_are_minimum_and_maximum(n, order):
    points = np.asarray(X[:n], order=order)
    ends = extent(torch.from_numpy(points))
    np.testing.assert_array_equal(ends, [points.min(axis=0), points.max(axis=0)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [3, 69_999])
def test_values_that_are_not_finite_show(value, row):
    points = torch.tensor(X)
    points[row, 1] = value
    assert torch.isfinite(extent(points)).all(dim=0).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="NaN or infinity"):
        lf.KMeans(2).fit(points)
