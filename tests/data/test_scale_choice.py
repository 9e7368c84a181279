"""What `--scale auto` chooses, and that clusters are found with it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.data.column_scales import fit_column_scales
from lloydformer.data.scale_choice import ColumnSample, choose_scale

RNG = np.random.default_rng(0)
N = 2000
NORMAL = RNG.normal(size=N)
HALVES = np.arange(N) % 2
# Three clusters of amounts: each is a lognormal.
SEGMENTS = np.exp(np.array([3.0, 5.0, 7.0])[np.arange(N) % 3] + 0.4 * NORMAL)
OUTLIERS = np.where(np.arange(N) < 5, 1e5, NORMAL)

COLUMNS = {
    "one value": (np.full(N, 7.0), "constant"),
    "a flag": (HALVES, "binary"),
    "a rare flag": (np.arange(N) < 9, "binary"),
    "ratings": (RNG.integers(1, 6, size=N), "standard"),
    "skewed codes": (RNG.poisson(0.3, size=N), "standard"),
    "normal": (NORMAL, "standard"),
    "normal and positive": (50 + NORMAL, "standard"),
    "uniform from 0": (RNG.uniform(size=N), "standard"),
    "two clusters": (10 * HALVES + NORMAL, "standard"),
    "positive clusters": (50 * HALVES + NORMAL + 5, "standard"),
    "a small cluster far away": (np.where(np.arange(N) % 20, NORMAL, 15 + NORMAL), "robust"),
    "a lognormal": (np.exp(NORMAL), "log"),
    "a negative lognormal": (-np.exp(NORMAL), "log"),
    "lognormals": (SEGMENTS, "log"),
    "unequal lognormals": (np.where(np.arange(N) % 4, SEGMENTS, SEGMENTS * 30), "log"),
    "amounts, many of them 0": (np.where(RNG.uniform(size=N) < 0.4, 0, SEGMENTS), "log"),
    "counts": (RNG.negative_binomial(1, 0.02, size=N), "log"),
    "outliers": (OUTLIERS, "clip"),
    "a heavy tail on both sides": (RNG.standard_cauchy(N), "rank"),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column(name):
    values, wanted = COLUMNS[name]
    found = choose_scale(ColumnSample.of(values.astype(float), np.ones(N)))
    assert found.method == wanted, found


@pytest.mark.parametrize("name", COLUMNS)
def test_the_unit_changes_nothing(name):
    values = COLUMNS[name][0].astype(float)
    before = choose_scale(ColumnSample.of(values, np.ones(N)))
    for factor in (1e-6, 0.5, 1e6):
        found = choose_scale(ColumnSample.of(values * factor, np.ones(N)))
        if before.reason.endswith("whole numbers"):
            continue  # which they are in one unit only
        assert found.method == before.method


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=40), st.data())
def test_a_weight_is_a_number_of_equal_rows(values, data):
    column = np.array(values, dtype=float)
    weights = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(column),
                                          max_size=len(column))))  # fmt: skip
    if not weights.any():
        return
    one = ColumnSample.of(column, weights.astype(float))
    two = ColumnSample.of(np.repeat(column, weights), np.ones(weights.sum()))
    shares = np.linspace(0, 1, 9)
    np.testing.assert_allclose(one.quantiles(*shares), two.quantiles(*shares))
    expected = np.quantile(two.values, shares, method="averaged_inverted_cdf")
    np.testing.assert_allclose(two.quantiles(*shares), expected)
    assert choose_scale(one).method == choose_scale(two).method


def methods(points, **options):
    return [choice.method for choice in fit_column_scales(points, "auto", **options).choices]


def test_outliers_are_moved_to_limits_and_a_small_cluster_is_not():
    values = np.where(np.arange(N) % 12, NORMAL, NORMAL + 9)
    values[:3] = [1e6, -1e6, 500]
    column = ColumnSample.of(values, np.ones(N))
    assert choose_scale(column).method == "clip"
    low, high = column.limits
    cut = (values < low) | (values > high)
    assert cut[:3].all()
    assert -6 < low < -2
    assert 9 < high < 14
    assert cut.mean() < 0.04


def test_columns_of_comparable_spread_are_left_alone():
    assert methods(np.column_stack([NORMAL, 3 * NORMAL[::-1]])) == ["none", "none"]
    assert methods(np.column_stack([NORMAL, 9 * NORMAL[::-1]])) == ["standard", "standard"]


def test_pixels_are_left_alone():
    # Those at the edge are nearly always 0, and alone would have a long tail.
    pixels = RNG.binomial(16, RNG.beta(0.3, [[3.0], [0.3], [0.3], [0.3]], size=(4, N))).T
    pixels[0], pixels[1] = 0, 16
    assert set(methods(pixels.astype(float))) == {"none"}


def test_words_weigh_half_as_much_as_a_column_of_numbers():
    words = np.eye(10)[np.arange(N) % 10]
    points = np.column_stack([NORMAL, words])
    found = fit_column_scales(points, "auto", words=[(0, 1), (1, 10)])
    scaled = (points - found.shift) / found.scale
    assert scaled[:, 1:].var(axis=0).sum() == pytest.approx(0.5)
    assert scaled[:, 0].var() == pytest.approx(1.0)


def test_a_flag_weighs_as_two_columns_of_its_words():
    flag = np.column_stack([HALVES, NORMAL * 100])
    words = np.column_stack([HALVES, 1 - HALVES, NORMAL * 100])
    one = fit_column_scales(flag, "auto")
    two = fit_column_scales(words, "auto", words=[(0, 2), (2, 1)])
    assert (flag[:, 0] / one.scale[0]).var() == pytest.approx(
        (words[:, :2] / two.scale[:2]).var(axis=0).sum()
    )


def test_values_that_the_sample_lacks_count_for_the_ends(monkeypatch):
    monkeypatch.setattr("lloydformer.data.column_scales._SAMPLED", 100)
    values = NORMAL.copy()
    values[1] = 1e6  # every twentieth row is in the sample
    assert methods(np.column_stack([values, 50 * NORMAL[::-1]]))[0] == "clip"
    rare = np.zeros(N)
    rare[1] = 5.0
    found = fit_column_scales(rare[:, None], "auto")
    assert np.isfinite([found.shift, found.scale]).all()
    assert found.scale[0] > 0
