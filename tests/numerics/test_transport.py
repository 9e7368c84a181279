"""Bounds on sizes, and the exact assignment within them, against the linear programme of SciPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydformer.algorithms.constrained import solve_linear_programme
from lloydformer.numerics.transport import assign_within, dual_bound, read_sizes, resolve_sizes


def problem(seed: int):
    """Costs (n, k) and bounds that some assignment is within: one-sided, two-sided or equal."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    k = int(rng.integers(1, min(n, 8) + 1))
    costs = rng.random((n, k)) * rng.choice([1e-3, 1.0, 1e6])
    if seed % 4 == 0:  # ties
        costs = np.round(costs, 1)
    lower = rng.integers(0, n // k + 1, size=k)
    upper = np.maximum(lower, rng.integers(n // k, 2 * (n // k) + 2, size=k))
    upper[rng.integers(k)] += max(0, n - upper.sum())
    if seed % 3 == 0:
        lower, upper = np.full(k, n // k), np.full(k, -(-n // k))
    return costs, lower, upper


@pytest.mark.parametrize("seed", range(60))
def test_it_is_the_optimum_of_the_linear_programme_and_proves_it(seed):
    costs, lower, upper = problem(seed)
    start = np.random.default_rng(seed).normal(size=costs.shape[1]) if seed % 2 else None
    labels, prices = assign_within(costs, lower, upper, start)
    sizes = np.bincount(labels, minlength=costs.shape[1])
    assert (lower <= sizes).all()
    assert (sizes <= upper).all()
    cost = costs[np.arange(len(costs)), labels].sum()
    best = (costs * solve_linear_programme(costs, lower, upper)).sum()
    assert cost == pytest.approx(best, rel=1e-9)
    assert dual_bound(costs, lower, upper, prices) == pytest.approx(best, rel=1e-9)
    # Complementary slackness: a place has a price only where a bound holds.
    assert (sizes[prices > 1e-9 * costs.max()] == upper[prices > 1e-9 * costs.max()]).all()
    assert (sizes[prices < -1e-9 * costs.max()] == lower[prices < -1e-9 * costs.max()]).all()


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=3), st.integers(0, 20))
@settings(max_examples=30)
def test_any_prices_give_a_lower_bound(prices, seed):
    costs, lower, upper = problem(seed)
    given_prices = np.resize(np.array(prices, dtype=float), costs.shape[1])
    labels, _ = assign_within(costs, lower, upper)
    cost = costs[np.arange(len(costs)), labels].sum()
    assert dual_bound(costs, lower, upper, given_prices) <= cost * (1 + 1e-9) + 1e-9


def test_by_hand():
    """Of 0, 1, 2, 9 two are at 0 and two at 9: moving 2 costs 49 - 4."""
    squares = np.array([[0.0, 81.0], [1.0, 64.0], [4.0, 49.0], [81.0, 0.0]])
    labels, prices = assign_within(squares, np.array([0, 0]), np.array([2, 4]))
    assert labels.tolist() == [0, 0, 1, 1]
    assert prices.tolist() == [45.0, 0.0]


@pytest.mark.parametrize(
    ("given_sizes", "expected"),
    [
        (None, ()),
        (3, (3,)),
        (np.int64(3), (3,)),
        (0.25, (0.25,)),
        ([1, 0.5, 0], (1, 0.5, 0)),
        (np.array([2, 5]), (2, 5)),
        (1.0, (1.0,)),
        (np.array([20, 0.5]), (20, 0.5)),
    ],
)
def test_sizes_are_read(given_sizes, expected):
    read = read_sizes("size_min", given_sizes)
    assert read == expected
    assert [type(one) for one in read] == [type(one) for one in expected]


@pytest.mark.parametrize(
    "wrong", [-1, 1.5, True, "3", [], [2, None], float("nan"), 2**63, {"a": 1}, [-0.1]]
)
def test_what_is_no_size_is_refused(wrong):
    with pytest.raises(ValueError, match=r"size_max: found .*; pass a whole number of rows"):
        read_sizes("size_max", wrong)


def test_fractions_of_the_rows():
    """1/k for both bounds is always possible; 0.29 * 100 is 28.999999999999996."""
    for n in range(1, 40):
        for k in range(1, n + 1):
            lower, upper = resolve_sizes((1 / k,), (1 / k,), n, k)
            assert lower.tolist() == [n // k] * k
            assert upper.tolist() == [-(-n // k)] * k
    assert resolve_sizes((0.29,), (), 100, 3)[0].tolist() == [29] * 3
    assert resolve_sizes((), (2**62,), 5, 2)[1].tolist() == [5, 5]


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        (((1, 2), ()), "size_min: found 2 numbers for 3 clusters; pass one number, or one for"),
        (((4,), ()), "size_min: found bounds that need 12 rows, but there are 10; pass at most 3"),
        (((), (3,)), "size_max: found bounds with room for 9 rows, but there are 10.* least 4"),
        (((0, 5, 0), (9, 4, 9)), "size_min: found 5 rows for cluster 1, whose size_max is 4"),
        (((0.5,), (0.9,)), "size_min: found bounds that need 15 rows, but there are 10"),
    ],
)
def test_bounds_that_contradict_each_other_are_named(sizes, words):
    with pytest.raises(ValueError, match=words):
        resolve_sizes(*sizes, 10, 3)
