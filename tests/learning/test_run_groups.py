"""Groups of runs: what one process trains in groups, ranks train in the same groups."""

from dataclasses import replace

import pytest
import torch
from stopped_training import train_until

from lloydformer.engines.ranks import Ranks
from lloydformer.learning import Run, train
from lloydformer.learning.run_groups import RunGroups

RUNS = [Run(seed) for seed in range(5)]


def test_ranks_share_the_groups_and_some_have_none(settings):
    def places(size, together):
        groups = [
            RunGroups(settings, RUNS, "cpu", together, Ranks(rank, size)) for rank in range(size)
        ]
        return [[(place.start, place.stop) for place in one.places] for one in groups]

    assert places(1, None) == [[(0, 5)]]
    assert places(2, None) == [[(0, 3)], [(3, 6)]]
    assert places(2, 2) == [[(0, 2)], [(2, 4), (4, 6)]]
    assert places(3, 3) == [[], [(0, 3)], [(3, 6)]]


def test_groups_are_trained_as_if_each_were_alone(settings):
    settings = replace(settings, n_steps=20)
    trained = train(settings, RUNS[:3], device="cpu", together=2)
    assert trained.together == 2
    for group in (slice(0, 2), slice(2, 3)):
        alone = train(settings, RUNS[:3][group], device="cpu")
        assert torch.equal(trained.weights[group], alone.weights)
        for together, one in zip(trained.history, alone.history, strict=True):
            assert (together.loss[group], together.relative[group]) == (one.loss, one.relative)


def test_a_resume_keeps_the_groups(settings, tmp_path):
    settings = replace(settings, n_steps=40)
    whole = train(settings, RUNS[:3], device="cpu", together=1)
    train_until(20, settings, RUNS[:3], tmp_path, checkpoint_every=1, together=1)
    resumed = train(settings, RUNS[:3], device="cpu", folder=tmp_path, resume=True)
    assert resumed.together == 1
    assert torch.equal(resumed.weights, whole.weights)


def test_no_runs(settings):
    with pytest.raises(ValueError, match="runs: found none; pass at least one"):
        train(settings, [], device="cpu")
