"""Measure fig:tr-cvg-vary: training logs, and the error of the smoothed objective."""

from collections.abc import Mapping
from functools import partial

import torch

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.lloyd import lloyd_path
from lloydformer.learning.objective import smoothed_objective
from lloydformer.learning.tasks import Tasks
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.scope import Scope
from lloydformer.paper.tr_cvg_vary.settings import ALL
from lloydformer.paper.training_curves import TrainingSetting, gathered, groups
from lloydformer.paper.training_runs import logs


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each training group, then the gap that the text mentions."""
    trained: dict[str, Piece] = {g.name: partial(logs, g, scope) for g in groups(ALL)}
    return trained | {"gaps": partial(gaps, scope)}


def gaps(scope: Scope) -> Record:
    """By how much the smoothed objective exceeds the exact one after a Lloyd step, by setting."""
    return {one.name: _gap(one, scope) for one in ALL}


def _gap(setting: TrainingSetting, scope: Scope) -> float:
    tasks = Tasks(setting.n_features, setting.n_clusters)
    points, centers = unseen(tasks, n_tasks=64, seed=scope.seed)
    _, centers = lloyd_path(points, centers, torch.zeros(1, dtype=torch.int64), n_steps=1)
    smoothed = smoothed_objective(points, centers, setting.temperature)
    exact = smoothed_objective(points, centers, smoothing="exact")
    return round(float((smoothed / exact - 1).mean()), 5)


def result(found: Mapping[str, Record]) -> Record:
    """The curves and final values of all settings, and the gaps."""
    return {**gathered(found, ALL), "gaps": found["gaps"]}
