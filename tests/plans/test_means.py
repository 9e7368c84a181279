"""Lloyd's and the spherical plan, the farthest points, the largest draws: tiny truths."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.plans.assign import Farthest, NearestDistances
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.medoids import MedoidsPlan

LINE = [[0.0], [1.0], [2.0], [10.0]]


def test_means_by_hand(small):
    """0, 1, 2 about 0 and 10 about 9: sums 3 and 10; the objective is 0 + 1 + 4 + 1."""
    plan = MeansPlan().with_square_sum(105.0)  # 0 + 1 + 4 + 100
    moved, step = small(LINE).step(plan, [[0.0], [9.0]])
    assert moved.flatten().tolist() == [1.0, 10.0]
    assert step.update.masses.tolist() == [3.0, 1.0]
    assert (step.objective.item(), step.changed.item()) == (6.0, 4)


def test_only_points_with_weight_change_their_label(small):
    few = small(LINE, [1, 0, 1, 1])
    _, step = few.step(MeansPlan(), [[0.0], [9.0]])
    assert step.changed == 3
    assert few.step(MeansPlan(), [[0.0], [9.0]])[1].changed == 0


def test_the_first_of_equally_near_centers_has_the_point(small):
    few = small([[0.0], [1.0], [2.0]])
    few.step(MeansPlan(), [[2.0], [0.0]])
    assert few.session.labels().tolist() == [1, 0, 0]


def test_directions_by_hand(small):
    """(2, 0) and (0, 3) together point along the diagonal; 1 - cos is 0.4 and 0.2."""
    few = small([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0]], directions=True)
    moved, step = few.step(
        MeansPlan(directions=True).with_square_sum(3.0), [[0.6, 0.8], [-1.0, 0.0]]
    )
    np.testing.assert_allclose(moved, [[0.5**0.5, 0.5**0.5], [-1, 0]])
    np.testing.assert_allclose(step.objective, 0.6)


def test_directions_that_sum_to_zero_leave_the_center(small):
    few = small([[1.0, 0.0], [-1.0, 0.0]], directions=True)
    moved, _ = few.step(MeansPlan(directions=True), [[0.0, 1.0]])
    assert moved.tolist() == [[0.0, 1.0]]


def test_the_farthest_by_distance_then_row(small):
    """Squared distances 4, 1, 4, 9, 4 from 0: row 3 first, then 0 and 2."""
    few = small([[2.0], [1.0], [-2.0], [3.0], [2.0]])
    few.session.fold(NearestDistances(torch.zeros(1, 1).double()))
    found = few.session.fold(Farthest(torch.zeros(1, 1).double(), 3))
    assert (found.distances.tolist(), found.rows.tolist()) == ([9.0, 4.0, 4.0], [3, 0, 2])


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.integers(1, 5), st.integers(1, 5))
def test_the_farthest_do_not_depend_on_the_blocks(small, values, m, leaf):
    few = small([[float(v)] for v in values], leaf=leaf)
    few.session.fold(NearestDistances(torch.zeros(1, 1).double()))
    found = few.session.fold(Farthest(torch.zeros(1, 1).double(), m))
    order = sorted(range(len(values)), key=lambda row: (-(values[row] ** 2), row))
    assert found.rows.tolist() == order[:m]


def test_a_point_without_weight_is_never_the_farthest(small):
    few = small(LINE, [1, 1, 1, 0])
    few.session.fold(NearestDistances(torch.zeros(1, 1).double()))
    assert few.session.fold(Farthest(torch.zeros(1, 1).double(), 1)).rows.tolist() == [2]


def test_medoids_draw_in_proportion_to_weight(small):
    """Three points in one place with weights 1, 2 and 0: a third, two thirds, never."""
    few = small([[0.0], [0.0], [0.0]], [1, 2, 0])
    drawn = [
        MedoidsPlan(seed=seed).step(few.session, torch.zeros(1, 1).double(), 0).update.rows.item()
        for seed in range(300)
    ]
    assert 70 < drawn.count(0) < 130
    assert drawn.count(2) == 0
