"""What the kernels remember between folds changes nothing: any order of folds gives the same."""

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Chunked, Native, instruction_set
from lloydformer.plans.assign import NearestDistances, NearestSums

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
N, D, K = 3000, 6, 40


@pytest.fixture(scope="module")
def data() -> TensorBlocks:
    rng = np.random.default_rng(6)
    middles = rng.uniform(-6, 6, size=(K, D))
    points = rng.normal(size=(N, D)) + middles[rng.integers(K, size=N)]
    weights = rng.uniform(0.5, 2, size=N)
    return TensorBlocks(torch.from_numpy(points), torch.from_numpy(weights), leaf=512)


def ran(engine, data, folds, forget_before=()):
    """The last fold's summary, and the state after it."""
    with engine.open(data) as session:
        for number, fold in enumerate(folds):
            if number in forget_before:
                session.forget()
            summary = session.fold(fold)
        return summary, session.state


def check(data, folds, forget_before=()) -> None:
    truth, plain = ran(Chunked(1), data, folds, forget_before)
    for bounded in (True, False):
        found, state = ran(Native(bounded=bounded), data, folds, forget_before)
        for one, other in zip(found, truth, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)
        for name in ("labels", "previous"):
            assert torch.equal(state.column(name), plain.column(name))


def path(data, n_steps: int = 12) -> list[torch.Tensor]:
    """Centers that settle, so that bounds are in use at the end."""
    centers = [data.take(torch.arange(K))]
    for _ in range(n_steps):
        (sums, masses, _), _ = ran(Chunked(1), data, [NearestSums(centers[-1])])
        centers.append(torch.where(masses[:, None] > 0, sums / masses[:, None], centers[-1]))
    return centers


def test_measuring_by_other_centers_in_between(data):
    """It leaves labels that the next fold has to replace."""
    one, other = data.take(torch.arange(K)), data.take(torch.arange(K, 2 * K))
    check(data, [NearestSums(one), NearestDistances(other), NearestSums(one)])


def test_measuring_while_bounds_are_in_use(data):
    """It is not an iteration: later folds do not compare their labels with its labels."""
    centers = path(data)
    folds = [NearestSums(c) for c in centers]
    check(data, [*folds, NearestDistances(centers[3]), NearestSums(centers[-1])])
    check(data, [*folds, NearestDistances(centers[3])])


def test_another_number_of_clusters(data):
    few, many = data.take(torch.arange(7)), data.take(torch.arange(K))
    check(data, [NearestSums(few), NearestSums(many)])


def test_a_second_start(data):
    """As for each restart: the labels of the last iteration are forgotten."""
    folds = [NearestSums(c) for c in path(data)]
    check(
        data, [*folds, NearestDistances(data.take(torch.arange(K))), *folds[:2]], {len(folds) + 1}
    )


def test_measuring_after_labels_are_forgotten(data):
    """Bounds are those of labels that are not there any more."""
    centers = path(data)
    folds = [NearestSums(c) for c in centers]
    check(data, [*folds, NearestDistances(centers[-1])], {len(folds)})


def test_the_same_centers_again(data):
    centers = path(data)
    folds = [NearestSums(c) for c in centers]
    check(data, [*folds, folds[-1], folds[-1]])
    (_, _, changed), _ = ran(Native(), data, [*folds, folds[-1]])
    assert changed == 0


def test_labels_of_an_iteration_that_the_kernels_have_not_run(data):
    """They count changed labels by comparing with the column `previous`."""
    centers = data.take(torch.arange(K))
    results = []
    for engine in (Native(), Chunked(1)):
        with engine.open(data) as session:
            session.state.column("previous").copy_(torch.arange(N) % K)
            if isinstance(engine, Native):
                session.points.fresh = False
            results.append(session.fold(NearestSums(centers)))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


class Interrupting:
    """Kernels that are interrupted at the end of their work."""

    def __init__(self, kernels) -> None:
        self.kernels = kernels

    def run(self, *name, **arguments):
        self.kernels.run(*name, **arguments)
        raise KeyboardInterrupt


def test_after_an_error_every_label_counts_as_changed(data):
    centers = data.take(torch.arange(K))
    with Native().open(data) as session:
        session.fold(NearestSums(centers))
        kernels, session.points.kernels = (
            session.points.kernels,
            Interrupting(session.points.kernels),
        )
        with pytest.raises(KeyboardInterrupt):
            session.fold(NearestSums(centers))
        session.points.kernels = kernels
        assert session.fold(NearestSums(centers))[2] == N
        assert session.fold(NearestSums(centers))[2] == 0
