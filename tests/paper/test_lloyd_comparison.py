"""Starts are points of their tasks, k-means++ is better, and Lloyd steps agree with sklearn."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.tasks import Batch, Tasks
from lloydformer.paper.lloyd_comparison import (
    PLAIN,
    best_of_starts,
    greedy_candidates,
    run_lloyd_steps,
    start_at_random,
    start_plusplus,
)


@pytest.fixture(scope="module")
def batch() -> Batch:
    return draw_unseen(Tasks(8, 5, n_points=60), n_tasks=40)


def test_centers_are_different_points_of_the_task(batch):
    for other in (
        start_plusplus(batch, PLAIN, 3),
        start_plusplus(batch, greedy_candidates(5), 3),
        start_at_random(batch, 3),
    ):
        same = (other.centers[0][:, :, None] == batch.points[0][:, None]).all(dim=-1)
        assert (same.sum(dim=2) == 1).all()
        assert (same.sum(dim=1) <= 1).all()
        assert other.points is batch.points
        assert not torch.equal(other.centers, batch.centers)


def test_greedy_starts_beat_plain_ones_and_plain_ones_beat_random_ones(batch):
    def mean(b: Batch) -> float:
        return float(smoothed_objective(*b, smoothing="exact").mean())

    assert (
        mean(start_plusplus(batch, greedy_candidates(5), 0))
        < mean(start_plusplus(batch, PLAIN, 0))
        < mean(batch)
    )


def test_lloyd_steps_are_those_of_scikit_learn(batch):
    start = start_plusplus(batch, greedy_candidates(5), 0)  # leaves no cluster empty
    ours = run_lloyd_steps(start, 300, seed=0)[0]
    for task in range(5):
        x, c = (part[0, task].double().numpy() for part in start)
        peer = KMeans(5, init=c, n_init=1, max_iter=300, tol=0, algorithm="lloyd").fit(x)
        assert float(ours[task]) == pytest.approx(np.log(peer.inertia_), abs=1e-4)


def test_best_of_is_the_minimum_over_the_starts_for_each_task(batch):
    starts = [start_plusplus(batch, PLAIN, seed) for seed in range(3)]
    each = torch.stack([run_lloyd_steps(start, 5, 0)[0] for start in starts])
    assert torch.equal(best_of_starts(starts, 5, 0), each.amin(dim=0))
    assert (each.amin(dim=0) < each[0]).any()


def test_scikit_learns_number_of_candidates():
    assert [greedy_candidates(k) for k in (2, 10, 25)] == [2, 4, 5]
