"""Empty clusters: the three policies, by hand, on every engine."""

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.trimmed import TrimmedPlan
from lloydformer.solving.iterations import PlanLoop, SessionProblem
from lloydformer.solving.rules import Rules

LINE = torch.tensor([[0.0], [1.0], [2.0], [9.0]]).double()
FAR = torch.tensor([[1.0], [100.0], [200.0]]).double()  # the last two have no point


@pytest.fixture
def placed(engine):
    """placed(policy, plan, weights, centers): the centers after one iteration; the origin is 0."""

    def run(policy, plan=None, weights=None, centers=FAR):
        plan = plan or MeansPlan()
        data = TensorBlocks(LINE, weights, leaf=2, given_origin=torch.zeros(1).double())
        with ENGINES[engine]().open(data) as session:
            problem, rules = SessionProblem(plan, session), Rules(1, 0.0, empty=policy)
            loop = PlanLoop(plan, problem, rules, np.zeros(1), centers[None])
            loop.advance()
            return loop.centers[0]

    return run


def test_the_farthest_points_fill_them_and_leave_their_own_cluster(placed):
    """From 1, the point 9 is farthest, then 0 before 2; what stays has its mean at 1.5."""
    assert placed("farthest").flatten().tolist() == [1.5, 9.0, 0.0]


def test_kept_clusters_stay_where_they_are(placed):
    assert placed("keep").flatten().tolist() == [3.0, 100.0, 200.0]


def test_an_error_names_the_first_and_says_what_to_do(placed):
    with pytest.raises(ValueError, match=r"n_clusters: cluster 1 has lost.*fewer clusters"):
        placed("error")


def test_no_policy_matters_without_empty_clusters(placed):
    centers = torch.tensor([[0.0], [9.0]]).double()
    for policy in ("farthest", "keep", "error"):
        assert placed(policy, centers=centers).flatten().tolist() == [1.0, 9.0]


def test_a_point_without_weight_fills_nothing(placed):
    weights = torch.tensor([1.0, 1.0, 1.0, 0.0]).double()
    assert placed("farthest", weights=weights).flatten().tolist() == [1.0, 0.0, 2.0]


def test_the_weight_of_the_point_leaves_with_it(placed):
    """Weight 2 at 9: without it, 0, 1 and 2 remain; then 0 goes too."""
    weights = torch.tensor([1.0, 1.0, 1.0, 2.0]).double()
    assert placed("farthest", weights=weights).flatten().tolist() == [1.5, 9.0, 0.0]


def test_where_points_count_unequally_the_filler_stays_in_its_own_cluster_too(placed):
    """Trimmed to the nearest half, 0, 1, 2 about 1 keep the mean 1; 9 was trimmed and fills."""
    assert placed("farthest", TrimmedPlan(0.75)).flatten().tolist() == [1.0, 9.0, 0.0]
    assert placed("farthest", RobustPlan(1.0)).flatten().tolist()[1:] == [9.0, 0.0]


def test_there_may_be_fewer_points_away_from_their_center_than_empty_clusters(placed):
    """Points that are centers themselves do not move: the second empty cluster keeps its place."""
    centers = torch.tensor([[0.0], [1.0], [2.0], [100.0], [200.0]]).double()
    assert placed("farthest", centers=centers).flatten().tolist() == [0.0, 1.0, 2.0, 9.0, 200.0]
