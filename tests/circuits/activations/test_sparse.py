"""Sparsemax, top-k soft-max and norm-max, by hand and by other ways to solve their problems."""

import entmax
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from torch.autograd import gradcheck

from lloydformer.circuits.activations import Context, NormMax, Softmax, Sparsemax, TopK
from lloydformer.circuits.activations.sparse import ends, inverse_temperature_that_keeps

rows_of_scores = st.lists(st.floats(-5, 5), min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([2.0, 0.0], [1.0, 0.0]),
        ([0.5, 0.0], [0.75, 0.25]),  # the threshold is -0.25
        ([1.0, 0.5, -4.0], [0.75, 0.25, 0.0]),
        ([3.0, 3.0, 0.0], [0.5, 0.5, 0.0]),
    ],
)
def test_sparsemax_by_hand(scores, expected):
    assert Sparsemax()(torch.tensor([scores])).tolist() == [expected]


@given(rows_of_scores, st.floats(0.01, 100))
def test_sparsemax_equals_entmaxs(row, gamma):
    scores = torch.tensor([row], dtype=torch.float64)
    expected = entmax.sparsemax(gamma * scores, dim=-1)
    torch.testing.assert_close(Sparsemax(gamma)(scores), expected, rtol=0, atol=1e-12)


@given(rows_of_scores)
def test_sparsemax_equals_entmaxs_by_bisection(row):
    scores = torch.tensor([row], dtype=torch.float64)
    expected = entmax.sparsemax_bisect(scores, dim=-1)
    torch.testing.assert_close(Sparsemax()(scores), expected, rtol=0, atol=1e-9)


def test_sparsemax_is_exact_far_from_zero():
    scores = torch.tensor([[-1e8, -1e8 - 0.5, -2e8]], dtype=torch.float64)
    assert Sparsemax()(scores).tolist() == [[0.75, 0.25, 0.0]]


@given(rows_of_scores, st.integers(1, 10), st.floats(0.1, 10))
def test_top_k_is_softmax_of_the_best(row, m, gamma):
    scores = torch.tensor([row], dtype=torch.float64)
    border = sorted(row)[-min(m, len(row))]
    best = scores[0] >= border
    expected = torch.zeros_like(scores[0])
    expected[best] = (gamma * scores[0, best]).softmax(dim=0)
    torch.testing.assert_close(TopK(m, gamma)(scores)[0], expected)


def test_top_k_keeps_keys_tied_with_the_last():
    assert TopK(1)(torch.tensor([[2.0, 2.0, 0.0]])).tolist() == [[0.5, 0.5, 0.0]]


def test_top_of_all_is_softmax(rng):
    scores = torch.tensor(rng.normal(size=(3, 5)))
    assert torch.equal(TopK(5, 2.0)(scores), Softmax(2.0)(scores))
    assert torch.equal(TopK(9, 2.0)(scores), Softmax(2.0)(scores))


def test_gradients(rng):
    scores = torch.tensor(rng.normal(size=(2, 3, 5)), requires_grad=True)
    assert gradcheck(Sparsemax(0.6), scores)
    assert gradcheck(TopK(3, 1.7), scores)


rows_of_quarters = st.lists(st.integers(-12, 12).map(lambda i: i / 4), min_size=1, max_size=8)
inverses = st.integers(0, 60).map(lambda i: i / 4 + 0.1)  # of gamma; never where two m meet


def norm_max(row, **parameters):
    scores = torch.tensor(np.array(row, dtype=float)[None])
    return NormMax(**parameters)(scores)[0].numpy()


@pytest.mark.parametrize(
    ("inverse", "expected"),
    [
        (1, [1, 0, 0]),
        (1.9, [1, 0, 0]),
        (2.1, [0.5, 0.5, 0]),
        (3.9, [0.5, 0.5, 0]),
        (5, [1 / 3] * 3),
    ],
)
def test_by_hand(inverse, expected):
    """3, 1, 0: S_1 - a_2 = 2, S_2 - 2 a_3 = 4."""
    np.testing.assert_array_equal(norm_max([3, 1, 0], inverse_temperature=1 / inverse), expected)


def test_the_intervals_by_hand():
    assert ends(torch.tensor([[3.0, 1.0, 0.0]])).tolist() == [[2.0, 4.0]]


def objective(scores, p, gamma):
    return gamma * np.dot(scores, p) - p.max()


@given(rows_of_quarters, inverses)
def test_no_uniform_choice_of_the_best_m_is_better(row, inverse):
    gamma, best_first = 1 / inverse, np.argsort(row)[::-1]
    choices = [np.isin(np.arange(len(row)), best_first[:m]) / m for m in range(1, len(row) + 1)]
    best = max(objective(row, p, gamma) for p in choices)
    found = norm_max(row, inverse_temperature=gamma)
    assert objective(row, found, gamma) == pytest.approx(best, abs=1e-12)


@given(rows_of_quarters, inverses)
def test_is_the_solution_of_the_linear_program(row, inverse):
    """Maximise <a, p> - t / gamma over p on the simplex and t with p_i <= t."""
    n = len(row)
    solved = linprog(
        c=[*(-np.array(row)), inverse],
        A_ub=np.hstack([np.eye(n), -np.ones((n, 1))]),
        b_ub=np.zeros(n),
        A_eq=[[1.0] * n + [0.0]],
        b_eq=[1.0],
    )
    found = norm_max(row, inverse_temperature=1 / inverse)
    np.testing.assert_allclose(found, solved.x[:n], atol=1e-7)


@pytest.mark.parametrize(
    ("keep", "n_kept"), [(0.01, 1), (0.2, 1), (0.21, 2), (0.6, 3), (0.95, 5), (1.0, 5)]
)
def test_keep_is_a_fraction_rounded_up(keep, n_kept):
    expected = np.arange(5) < n_kept
    np.testing.assert_array_equal(norm_max([9, 7, 4, 2, 1], keep=keep), expected / n_kept)


@pytest.mark.parametrize(
    ("keep", "size", "n_kept"), [(0.07, 100, 7), (0.55, 100, 55), (0.28, 25, 7), (0.281, 25, 8)]
)
def test_keep_tolerates_rounding(keep, size, n_kept):
    """0.07 * 100 is 7.000000000000001, and 7 must be kept."""
    assert (norm_max(range(size), keep=keep) > 0).sum() == n_kept


def test_keep_includes_keys_tied_with_the_last():
    np.testing.assert_array_equal(norm_max([3, 2, 2, 1], keep=0.5), [1 / 3, 1 / 3, 1 / 3, 0])


def test_keep_counts_only_the_points_of_the_cluster():
    scores = torch.tensor([[0.0, -1.0, -2.0, -3.0, -104.0, -105.0]])
    kept = NormMax(keep=0.5)(scores, Context(gap=100.0))
    assert kept.tolist() == [[0.5, 0.5, 0, 0, 0, 0]]


@given(st.sets(st.integers(-40, 40), min_size=2, max_size=9), st.data())
def test_keep_equals_the_gamma_that_keeps_as_many(values, data):
    row = sorted(values, reverse=True)
    count = data.draw(st.integers(1, len(row)))
    ordered = torch.tensor([row], dtype=torch.float64)
    gamma = inverse_temperature_that_keeps(ordered, count).item()
    np.testing.assert_array_equal(
        norm_max(row, inverse_temperature=gamma), norm_max(row, keep=count / len(row))
    )
