"""What rounding can decide: margins, error bounds, exact numbers, an algorithm's own scores."""

import numpy as np
import pytest
import torch

from lloydformer.algorithms import Lloyd
from lloydformer.paper.verify.rounding import (
    are_exact,
    assignment_scores,
    margins,
    sure_assignments,
)

F32, F64 = torch.float32, torch.float64


class CityBlock(Lloyd):
    def scores(self, points, centers):
        return -np.abs(points[:, None] - centers).sum(axis=2)


def rows(*numbers):
    return np.array(numbers, float).reshape(-1, 1)


def test_margins_by_hand():
    assert margins(np.array([[-4.0, -1.0, -3.0], [0.0, -9.0, 0.0]])).tolist() == [2, 0]
    assert margins(np.array([[-4.0]])).tolist() == [np.inf]


def test_scores_are_distances_or_those_of_the_algorithm():
    points, centers = np.array([[1.0, 2.0]]), np.array([[0.0, 0.0], [4.0, 2.0]])
    assert assignment_scores(Lloyd(), points, centers).tolist() == [[-5, -9]]
    assert assignment_scores(CityBlock(), points, centers).tolist() == [[-3, -3]]


@pytest.mark.parametrize(
    ("points", "dtype", "exact"),
    [
        (rows(0, 1, 2), F64, True),
        (rows(0.25, -3.5), F64, True),
        (rows(0, 1 / 3), F64, False),
        (rows(0, 0.1), F64, False),
        (rows(0, 2**19), F64, True),
        (rows(0, 2**19), F32, False),
        (rows(0, 2**40), F64, False),
    ],
)
def test_exact_numbers(points, dtype, exact):
    assert are_exact(Lloyd(), points, points[:1], dtype) == exact
    assert not are_exact(CityBlock(), points, points[:1], dtype)


def test_a_tie_is_sure_if_the_numbers_are_exact():
    points = rows(0, 1, 2)
    assert sure_assignments(Lloyd(), points, rows(0, 2), F64).all()
    third = points / 3
    assert sure_assignments(Lloyd(), third, rows(0, 2) / 3, F64).tolist() == [True, False, True]


def test_a_small_margin_is_sure_in_float64_only():
    points, centers = rows(0.1, 1.000001, 2.1), rows(0.1, 1.9)
    assert sure_assignments(Lloyd(), points, centers, F64).all()
    assert sure_assignments(Lloyd(), points, centers, F32).tolist() == [True, False, True]


def test_ties_of_other_scores_are_not_sure():
    """The first point is 3 blocks from either center; it is nearer to one of them."""
    points, centers = np.array([[1.0, 2.0], [9.0, 9.0]]), np.array([[0.0, 0.0], [4.0, 2.0]])
    assert sure_assignments(CityBlock(), points, centers, F64).tolist() == [False, True]
    assert sure_assignments(Lloyd(), points, centers, F64).all()
