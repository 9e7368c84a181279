"""Trimmed k-means as a plan: tiny truths."""

import pytest

from lloydformer.plans.trimmed import TrimmedPlan

LINE = [[0.0], [1.0], [2.0], [10.0]]


@pytest.mark.parametrize(("keep", "center"), [(1.0, 3.25), (0.75, 1.0), (0.5, 0.5), (0.01, 0.0)])
def test_by_hand(small, keep, center):
    """0, 1, 2, 10 about a center at 0: the farthest go first."""
    moved, _ = small(LINE).step(TrimmedPlan(keep), [[0.0]])
    assert moved.item() == center


def test_trimmed_points_keep_their_label_and_are_marked(small):
    few = small([[0.0], [1.0], [20.0], [22.0]])
    few.step(TrimmedPlan(0.5), [[0.0], [20.0]])
    assert few.session.labels().tolist() == [0, 0, 1, 1]
    assert few.session.trimmed().tolist() == [False, True, False, True]


def test_what_is_tied_with_the_last_stays(small):
    """-1 and 1 are equally far from 0: half of four points is three of them."""
    moved, step = small([[0.0], [-1.0], [1.0], [5.0]]).step(TrimmedPlan(0.5), [[0.0]])
    assert (moved.item(), step.update.masses.item(), step.objective) == (0.0, 3.0, 2.0)


def test_weights_decide_how_many_stay(small):
    """Weights 3, 1, 1, 1: half of the weight is the first point alone."""
    moved, step = small(LINE, [3, 1, 1, 1]).step(TrimmedPlan(0.5), [[0.0]])
    assert (moved.item(), step.update.masses.item()) == (0.0, 3.0)


def test_a_cluster_without_points_keeps_its_center(small):
    moved, step = small(LINE).step(TrimmedPlan(0.5), [[0.0], [100.0]])
    assert (moved[1].item(), step.update.masses[1].item()) == (100.0, 0.0)
