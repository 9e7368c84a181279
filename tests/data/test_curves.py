"""Curves of columns: increasing, and undone to rounding."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lloydformer.data import curves
from lloydformer.data.curves import Curves, rank_knots, signed_exp, signed_log

NUMBERS = st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30).map(np.array)
UNITS = st.floats(1e-6, 1e6)


def test_a_signed_logarithm_by_hand():
    found = signed_log(np.array([0.0, 1.0, 2.0, 2 * np.e, -2 * np.e]), 2.0)
    np.testing.assert_allclose(found, [0.0, 0.5, 1.0, 2.0, -2.0])


@given(NUMBERS, UNITS)
def test_a_signed_logarithm_is_undone(values, unit):
    again = signed_exp(signed_log(values, unit), unit)
    np.testing.assert_allclose(again, values, rtol=1e-13, atol=1e-300)


@given(NUMBERS, UNITS)
def test_a_signed_logarithm_keeps_the_order(values, unit):
    values = np.sort(values)
    assert (np.diff(signed_log(values, unit)) >= 0).all()


def test_positive_values_above_the_unit_are_logarithms():
    values = np.exp(np.linspace(0, 20, 50))
    np.testing.assert_allclose(signed_log(values, 1.0), 1 + np.log(values))


def test_ranks_are_those_of_scipy():
    values = np.random.default_rng(0).integers(7, size=60).astype(float)
    distinct, shares = rank_knots(values, np.ones(60))
    expected = (stats.rankdata(values) - 0.5) / 60
    np.testing.assert_allclose(np.interp(values, distinct, shares), expected)


def test_weight_two_is_two_rows():
    one = rank_knots(np.array([1.0, 2.0, 5.0]), np.array([1.0, 2.0, 1.0]))
    two = rank_knots(np.array([1.0, 2.0, 2.0, 5.0]), np.ones(4))
    np.testing.assert_allclose(one, two)


def test_many_values_have_few_knots_near_the_ranks():
    values = np.random.default_rng(0).standard_cauchy(20_000)
    distinct, shares = rank_knots(values, np.ones(20_000))
    assert len(distinct) <= curves.KNOTS
    assert distinct[0] == values.min()
    assert distinct[-1] == values.max()
    expected = (stats.rankdata(values) - 0.5) / 20_000
    assert np.abs(np.interp(values, distinct, shares) - expected).max() < 1e-3


@pytest.fixture
def mixed():
    rows = np.random.default_rng(0).standard_t(2, size=(500, 3))
    knots = {2: rank_knots(rows[:, 2], np.ones(500))}
    return rows, Curves.build(3, {0: 0.5}, knots)


@pytest.mark.parametrize("chunk", [7, 1 << 14])
def test_columns_have_their_own_curves(mixed, chunk, monkeypatch):
    rows, built = mixed
    monkeypatch.setattr(curves, "CHUNK", chunk)
    bent = built.bend(rows)
    np.testing.assert_array_equal(bent[:, 0], signed_log(rows[:, 0], 0.5))
    np.testing.assert_array_equal(bent[:, 1], rows[:, 1])
    np.testing.assert_allclose(bent[:, 2], (stats.rankdata(rows[:, 2]) - 0.5) / 500)
    np.testing.assert_allclose(built.unbend(bent), rows, rtol=1e-10, atol=1e-12)


def test_missing_and_infinite_values_stay_what_they_are(mixed):
    rows = np.array([[np.nan] * 3, [np.inf] * 3])
    np.testing.assert_array_equal(mixed[1].bend(rows), rows)


def test_without_curves_there_is_none():
    assert Curves.build(3, {}, {}) is None


@pytest.mark.parametrize("change", [{"shares": [1.0, 0.0]}, {"values": [0.0]}, {"units": [-1.0]}])
def test_damaged_curves_are_refused(change):
    good = {"units": [0.0], "counts": [2], "values": [0.0, 1.0], "shares": [0.0, 1.0]}
    Curves(**{name: np.array(value) for name, value in good.items()})
    with pytest.raises(ValueError, match="do not increase"):
        Curves(**{name: np.array(value) for name, value in (good | change).items()})
