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
    sample_numbers,
    sampled_origin,
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


def test_the_origin_of_a_sample_by_hand():
    # Column 0: median 5, distances 4 3 0 1 95, their median 3: a multiple of 2. Column 1: most
    # numbers are 7. Column 2: tiny differences of large numbers.
    rows = np.array(
        [[1, 7, 1e9], [2, 7, 1e9 + 64], [5, 7, 1e9 + 128], [6, 0, 1e9], [100, 1e9, 1e9]]
    )
    origin = sampled_origin(rows.astype(np.float32))
    assert origin.tolist() == [4, 7, 1e9]
    assert origin.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1e3, -3e6])
def test_far_rows_do_not_move_the_origin_of_a_sample(shift, dtype, rng):
    points = (rng.normal(size=(500, 3)) + shift).astype(dtype)
    points[::50] = 1e15
    origin = sampled_origin(points[sample_numbers(len(points))])
    near = np.delete(points, np.s_[::50], axis=0)
    assert np.abs(near - origin).max() < 8
    np.testing.assert_array_equal((near - origin) + origin, near)


@pytest.mark.parametrize("n", [1, 2, 62, 63, 64, 1000, 10**9])
def test_a_sample_is_made_of_different_rows_of_all_the_data(n):
    numbers = sample_numbers(n)
    assert len(numbers) == min(n, 63)
    assert numbers[0] == 0
    assert n - n / len(numbers) - 1 <= numbers[-1] < n
    assert (np.diff(numbers) > 0).all()


def test_the_largest_numbers_have_a_finite_origin():
    top = np.finfo(np.float32).max
    rows = np.array([[top, 1, 1e-45], [-top, 1 + 2**-23, 0]] * 5, np.float32)
    assert np.isfinite(sampled_origin(rows)).all()


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
