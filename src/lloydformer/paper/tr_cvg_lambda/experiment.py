"""Measure fig:tr-cvg-lambda: training logs, and mean distances between points."""

from collections.abc import Mapping
from functools import partial

from lloydformer.learning.evaluation import unseen
from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.tasks import Tasks
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.scope import Scope
from lloydformer.paper.tr_cvg_lambda.settings import HIGH, LOW
from lloydformer.paper.training_curves import gathered, groups
from lloydformer.paper.training_runs import logs


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each training group, then the distances that the text mentions."""
    trained: dict[str, Piece] = {g.name: partial(logs, g, scope) for g in groups(LOW + HIGH)}
    return trained | {"distances": partial(distances, scope)}


def distances(scope: Scope) -> Record:
    """The mean squared distance of two points of a task, by d."""
    return {str(d): _distance(Tasks(d, 6), scope) for d in (4, 32)}


def _distance(tasks: Tasks, scope: Scope) -> float:
    points = unseen(tasks, n_tasks=16, seed=scope.seed).points
    n = points.shape[2]
    total = expanded_distances(points, points).double().sum(dim=(-2, -1)).mean()
    return round(float(total) / (n * (n - 1)), 4)


def result(found: Mapping[str, Record]) -> Record:
    """The curves and final values of all settings, and the squared distances."""
    return {**gathered(found, LOW + HIGH), "squared_distances": found["distances"]}
