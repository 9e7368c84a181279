"""Comparisons keep the objective of every task, and the last centers."""

import torch

from lloydformer.learning.evaluation import compare, compare_on, draw_unseen
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.pretrained import load


def test_means_are_over_tasks_and_centers_are_the_last():
    layer = load("d4-k6")
    tasks = layer.settings.tasks
    found = compare(layer.layer, layer.weights, tasks, n_tasks=6, n_steps=3, seed=5)
    batch = draw_unseen(tasks, n_tasks=6, seed=5)
    again = compare_on(batch, layer.layer, layer.weights, n_steps=3, seed=5)
    assert torch.equal(found.by_layer, again.by_layer)
    assert found.n_tasks == 6
    assert found.by_lloyd.shape == (1, 6, 4)
    torch.testing.assert_close(found.lloyd, found.by_lloyd.mean(dim=1))
    ends = smoothed_objective(batch.points, found.centers, smoothing="exact").log()
    torch.testing.assert_close(found.by_layer[..., -1], ends)
    initial, lloyd, transformer = found.row()
    assert abs(initial - float(found.by_layer[..., 0].mean())) < 1e-6
    assert (lloyd, transformer) == (float(found.lloyd[0, -1]), float(found.transformer[0, -1]))


def test_seed_changes_the_tasks_and_centers_change_the_result():
    layer = load("d4-k6")
    tasks = layer.settings.tasks
    one, other = draw_unseen(tasks, n_tasks=2, seed=0), draw_unseen(tasks, n_tasks=2, seed=1)
    assert not torch.equal(one.points, other.points)
    swapped = one._replace(centers=one.points[:, :, :6])
    ways = [compare_on(b, layer.layer, layer.weights, n_steps=1).by_layer for b in (one, swapped)]
    assert not torch.equal(*ways)
