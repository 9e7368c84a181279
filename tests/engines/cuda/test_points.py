"""Sums in fixed point: the same in any order, exactly undone, and near to the true sums."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lloydformer.data.column_statistics import typical_size
from lloydformer.engines.cuda.points import DevicePoints

MAGIC = 6755399441055744.0
values = st.floats(-(2.0**99), 2.0**99, width=32) | st.floats(-(2.0**-99), 2.0**-99, width=32)
problems = st.lists(st.tuples(values, st.floats(0, 1e6)), min_size=1, max_size=40)


def points_of(x: list[float], weights: list[float]) -> DevicePoints:
    reach, heaviest = max(map(abs, x)), max(weights)
    assume(reach > 1e-35)
    assume(heaviest > 1e-6)
    rows = torch.tensor(x, dtype=torch.float32)[:, None]
    return DevicePoints(rows, torch.zeros(1), torch.tensor(weights), reach, heaviest)


def in_units(values: np.ndarray, unit: float) -> np.ndarray:
    """As the kernels round: adding 1.5 * 2^52 leaves no fraction."""
    return ((values * unit + MAGIC) - MAGIC).astype(np.int64)


@given(problems, st.randoms())
def test_sums_are_the_same_in_any_order_and_near_the_true_sum(problem, random):
    x, weights = zip(*problem, strict=True)
    points = points_of(x, weights)
    products = np.array(x) * np.array(weights)
    fixed = in_units(products, points.sum_unit)
    shuffled = fixed.copy()
    random.shuffle(shuffled)
    assert fixed.sum() == shuffled.sum() == sum(map(int, fixed))
    assert sum(map(abs, map(int, fixed))) <= 2**62
    exact = sum(Fraction(a) for a in products)
    error = abs(Fraction(int(fixed.sum())) - exact * Fraction(points.sum_unit))
    assert error <= Fraction(len(x), 2)


@given(problems)
def test_what_is_added_and_subtracted_again_leaves_nothing(problem):
    x, weights = zip(*problem, strict=True)
    points = points_of(x, weights)
    fixed = in_units(np.array(x) * np.array(weights), points.sum_unit)
    kept = fixed[::2].sum()
    assert fixed.sum() - fixed[1::2].sum() == kept


@given(st.floats(-(2.0**50), 2.0**50))
def test_adding_a_large_number_rounds_to_the_nearest_whole_number(value):
    assert in_units(np.array([value]), 1.0)[0] == np.rint(value)


@given(problems)
def test_masses_stay_below_their_limit(problem):
    x, weights = zip(*problem, strict=True)
    points = points_of(x, weights)
    masses = in_units(np.array(weights), points.mass_unit)
    assert sum(map(int, masses)) <= 2**62
    heaviest = max(weights)
    assert masses.max() >= 2**49 > 0
    assert abs(masses.max() / points.mass_unit - heaviest) <= 1e-14 * heaviest


@pytest.mark.parametrize(
    ("sums", "count", "size"),
    [
        ([32.0, 64, 32, 96, 32, 32, 32, 9e9], 256, 1.0),
        ([3.0, 0, 0, 0, 0, 0, 0, 0], 3, 1.0),
        ([32.0, 8, 0, 0, 0, 0, 0, 0], 36, 2.0),
    ],
)
def test_the_size_of_most_coordinates(sums, count, size):
    assert typical_size(np.array(sums), count) == size
