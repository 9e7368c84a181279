"""Minima, maxima and sums of columns."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.data.column_statistics import ColumnStatistics, column_min_max

X = np.random.default_rng(0).normal(size=(70_000, 3)) * [1.0, 10.0, 100.0] + 5


@pytest.mark.parametrize("n", [1, 5, 1 << 16, 70_000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_ends_are_minimum_and_maximum(n, order):
    points = np.asarray(X[:n], order=order)
    ends = column_min_max(torch.from_numpy(points))
    np.testing.assert_array_equal(ends, [points.min(axis=0), points.max(axis=0)])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [3, 69_999])
def test_values_that_are_not_finite_show(value, row):
    points = torch.tensor(X)
    points[row, 1] = value
    assert torch.isfinite(column_min_max(points)).all(dim=0).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="NaN or infinity"):
        lf.KMeans(2).fit(points)


@pytest.mark.parametrize("far", [0.0, 1e4, -3e6])
def test_moments_of_the_rows_less_an_origin(far, rng):
    rows = rng.normal(size=(500, 3)) + far
    away = rows - rows[0]
    ends = np.array([rows.min(axis=0), rows.max(axis=0)])
    squares = float(np.square(away).sum())
    survey = ColumnStatistics(ends, rows[0], away.sum(axis=0), squares, len(rows), ends, 0)
    origin = np.round(rows.mean(axis=0))
    squares, sums = survey.moments_about(origin)
    np.testing.assert_allclose(sums, (rows - origin).sum(axis=0), atol=1e-6)
    assert squares == pytest.approx(np.square(rows - origin).sum(), rel=1e-10)
