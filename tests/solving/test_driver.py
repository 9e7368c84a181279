"""The driver: stop rules, restarts, history, callbacks, and Ctrl-C."""

import math

import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import choose
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.medoids import MedoidsPlan
from lloydformer.plans.soft import SoftPlan
from lloydformer.solving.driver import Interrupted, Restarts, solve
from lloydformer.solving.iterations import PlanIterations
from lloydformer.solving.rules import Rules, same_labelling
from lloydformer.solving.run import FitContext

LINE = torch.tensor([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]]).double()
ZERO = torch.zeros(1).double()


@pytest.fixture
def solved(engine):
    """solved(plan, rules, starts, callback) runs on the line, two leaves of points."""

    def run(plan=None, rules=None, starts=((0.0, 1.0),), callback=None):
        data = TensorBlocks(LINE, leaf=4, given_origin=ZERO)
        rules = rules or Rules(tol=0.0)
        with choose(engine, data).open(data) as session:
            watched = callback is not None
            fit = FitContext.create(plan or MeansPlan(), session, rules, watched=watched)
            restarts = Restarts(len(starts), (torch.tensor(s).double()[:, None] for s in starts))
            return solve(fit, restarts, PlanIterations(), callback)

    return run


def test_it_stops_when_labels_stay(solved):
    """From 0 and 1: means 0 and 7.2, then 1 and 11, and the third step changes nothing."""
    result = solved()
    assert result.centers.flatten().tolist() == [1.0, 11.0]
    assert (result.n_iter, result.inertia) == (3, 4.0)
    assert result.labels.tolist() == [0, 0, 0, 1, 1, 1]


def test_the_history_holds_every_objective_and_the_last(solved):
    """0 + 0 + 1 + 81 + 100 + 121 from the start; 0 + 1 + 4 + 7.84 + 14.44 + 23.04 after a step."""
    assert solved().outcome.history == pytest.approx((303.0, 50.32, 4.0, 4.0))


def test_it_stops_when_centers_hardly_move(solved):
    """The variance is 25.67; a tolerance of 5 times that is more than the first shift."""
    assert solved(rules=Rules(tol=5.0)).n_iter == 1


def test_max_iter_is_the_end_and_labels_belong_to_the_last_centers(solved):
    result = solved(rules=Rules(max_iter=1, tol=0.0))
    assert result.centers.flatten().tolist() == [0.0, 7.2]
    assert result.labels.tolist() == [0, 0, 0, 1, 1, 1]  # 2 was with the second center before
    assert result.inertia == pytest.approx(50.32)


def test_soft_centers_stop_by_their_shift_alone(solved):
    """Labels are the final ones after the first step; the centers go on."""
    first = solved(SoftPlan(0.02), Rules(max_iter=1))
    moving = solved(SoftPlan(0.02), Rules(max_iter=200, tol=1e-9))
    assert torch.equal(first.labels, moving.labels)
    assert 5 < moving.n_iter < 200


def test_the_best_of_several_starts_is_kept(solved):
    worse, better = (10.0, 11.0, 12.0), (0.0, 1.0, 11.0)
    for starts in ((worse, better), (better, worse)):
        assert solved(starts=starts).inertia == solved(starts=(better,)).inertia


def test_equal_labellings_are_one_result(solved):
    """The second start ends with the clusters the other way round; the first one is kept."""
    assert solved(starts=((0.0, 11.0), (11.0, 0.0))).centers.flatten().tolist() == [1.0, 11.0]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [([0, 0, 1], [1, 1, 0], True), ([0, 0, 1], [0, 1, 1], False), ([0, 0, 0], [0, 0, 1], False)],
)
def test_labels_are_compared_up_to_the_numbers_of_the_clusters(one, other, equal):
    labellings = [(torch.tensor(labels), None) for labels in (one, other)]
    assert same_labelling(*labellings, n_clusters=2) is equal


def test_a_callback_hears_every_iteration_of_every_start(solved):
    heard = []
    solved(starts=((0.0, 1.0), (0.0, 11.0)), callback=heard.append)
    assert [(p.start, p.iteration) for p in heard] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]
    assert heard[0].objective == pytest.approx(303.0)
    assert heard[0].shift == pytest.approx(6.2**2)
    assert heard[-1].shift == 0


def interrupting(start, iteration):
    def callback(progress):
        if (progress.start, progress.iteration) == (start, iteration):
            raise KeyboardInterrupt

    return callback


def test_ctrl_c_carries_the_result_so_far(solved):
    with pytest.raises(Interrupted) as stopped:
        solved(callback=interrupting(0, 0))
    result = stopped.value.result
    assert result.centers.flatten().tolist() == [0.0, 7.2]
    assert result.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert result.n_iter == 1


def test_ctrl_c_in_a_later_start_carries_the_better_one(solved):
    with pytest.raises(KeyboardInterrupt) as stopped:
        solved(starts=((0.0, 11.0), (0.0, 1.0)), callback=interrupting(1, 0))
    assert stopped.value.result.inertia == 4.0
    assert stopped.value.result.labels.tolist() == [0, 0, 0, 1, 1, 1]


def drawn(solved, **rules):
    """Medoids from the middles of both triples."""
    return solved(MedoidsPlan(seed=1), Rules(max_iter=60, **rules), starts=((1.0, 11.0),))


def test_draws_go_on_until_nothing_better_came_for_a_while(solved):
    free, patient = drawn(solved), drawn(solved, patience=5)
    assert free.n_iter == 60
    assert 5 < patient.n_iter < 60
    assert free.inertia <= patient.inertia


def test_the_best_draw_is_kept_and_the_last_one_on_request(solved):
    best, last = drawn(solved), drawn(solved, return_last=True)
    assert best.inertia == pytest.approx(min(best.outcome.history[1:]))
    assert last.inertia == pytest.approx(last.outcome.history[-1])
    assert best.inertia < last.inertia < math.inf
    assert torch.equal(LINE[best.outcome.rows], best.centers)
