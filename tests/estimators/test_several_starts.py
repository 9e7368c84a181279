"""Several starts: later ones do not change the result of the best one."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.plans.assign import NearestDistances
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.driver import Interrupted, Restarts, solve
from lloydformer.solving.iterations import PlanIterations
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitContext

X = np.random.default_rng(0).normal(size=(3000, 3))


@pytest.mark.parametrize("init", ["k-means++", "k-means||", "random"])
@pytest.mark.parametrize("model", [lf.KMeans, lf.SoftKMeans, lf.TrimmedKMeans])
def test_labels_belong_to_the_centers(model, init):
    """Seeding writes to the state, too; the first start is the best in some of these."""
    for seed in range(4):
        fitted = model(8, init=init, n_init=4, max_iter=5, random_state=seed).fit(X)
        kept = fitted.labels_ >= 0
        assert np.array_equal(fitted.labels_[kept], fitted.predict(X)[kept])


def test_ctrl_c_while_the_second_start_is_drawn_keeps_the_labels_of_the_first():
    points = torch.tensor([[0.0], [1.0], [10.0], [11.0]]).double()
    first = torch.tensor([[0.0], [10.0]]).double()

    def starts(session):
        yield first
        session.fold(NearestDistances(first.flip(0)))  # labels of another start
        raise KeyboardInterrupt

    data = TensorBlocks(points, given_origin=torch.zeros(1).double())
    with Chunked(1).open(data) as session:
        fit = FitContext.create(MeansPlan(), session, Rules())
        restarts = Restarts(2, starts(session))
        with pytest.raises(Interrupted) as stop:
            solve(fit, restarts, PlanIterations())
    assert stop.value.result is not None
    assert stop.value.result.labels.tolist() == [0, 0, 1, 1]
