"""Origins, unit vectors and units of weights: exact, at any scale."""

import numpy as np
import pytest
import torch

from lloydformer.numerics.scaling import (
    check_ratio,
    directions,
    divide_by_unit,
    in_units,
    median,
    middle,
    middle_of_ends,
    unit_exponent,
)


@pytest.mark.parametrize("shift", [0.0, 1e6, -3e10])
@pytest.mark.parametrize("origin", [middle, median])
def test_subtracting_an_origin_is_exact(origin, shift, rng):
    points = torch.tensor(rng.normal(size=(40, 3)) + shift)
    moved = points - origin(points)
    assert torch.equal(moved + origin(points), points)
    assert moved.abs().max() < 8


def test_outliers_move_the_middle_and_not_the_median():
    points = torch.tensor([[0.0], [1.0], [2.0], [1000.0]])
    assert middle(points).item() == 512  # a multiple of the largest power of two in 500
    assert median(points).item() in (1, 2)


def test_the_middle_of_the_ends_is_the_middle(rng):
    points = rng.normal(size=(30, 4)) * [1, 1e-5, 1e5, 0]
    ends = np.stack([points.min(axis=0), points.max(axis=0)])
    np.testing.assert_array_equal(middle_of_ends(ends), middle(torch.tensor(points)).numpy())


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_directions_of_rows_of_any_length(scale):
    rows = torch.tensor([[3.0, -4.0], [0.0, 2.0]], dtype=torch.float64) * scale
    torch.testing.assert_close(
        directions("X", rows), torch.tensor([[0.6, -0.8], [0.0, 1.0]], dtype=torch.float64)
    )
    with pytest.raises(ValueError, match="X: found a row of zeros"):
        directions("X", torch.zeros(1, 2, dtype=torch.float64))


def test_weights_in_units_are_exact_and_stay_positive(rng):
    weights = rng.exponential(size=50) * 1e30
    scaled, unit = in_units("sample_weight", weights)
    assert 1 <= scaled.max() < 2
    np.testing.assert_array_equal(scaled * unit, weights)
    np.testing.assert_array_equal(divide_by_unit(weights, unit_exponent(weights.max())), scaled)
    assert (in_units("sample_weight", np.array([5e-324, 4.0]))[0] > 0).all()


def test_a_ratio_that_float64_cannot_hold_is_refused():
    with pytest.raises(ValueError, match="sample_weight: found 1e-300 beside 1e"):
        in_units("sample_weight", np.array([1e-300, 1e300]))
    with pytest.raises(ValueError, match="w: found 1e-300 beside 1e"):
        check_ratio("w", 1e-300, 1e300)
