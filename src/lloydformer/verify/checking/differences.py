"""Where a circuit and a plain algorithm differ first, on one problem."""

from dataclasses import replace

import numpy as np
import torch
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.verify.cases import Case
from lloydformer.verify.checking.trial import (
    SHARE_TOLERANCE,
    TOLERANCE,
    FirstDifference,
    Trial,
    TrialOutcome,
    quiet,
)
from lloydformer.verify.checking.variation import center_variation, share_variation
from lloydformer.verify.compare import ComparedLayer, compared_layers, is_decided
from lloydformer.verify.margins import are_exact
from lloydformer.verify.user_algorithm import StepAlgorithm


def outcome_of(trial: Trial) -> TrialOutcome:
    """Compare layer by layer from the algorithm's centers, and in a run over all layers.

    The run is compared in float64 only, and as far as rounding cannot change a decision.
    """
    with quiet():
        outcome, layers = TrialOutcome(trial), []
        if isinstance(trial.recipe, Recipe):
            layers = compared_layers(_case(trial, trial.recipe), trial.n_layers, trial.dtype)
            outcome = TrialOutcome(trial, undefined=trial.n_layers - len(layers))
        for layer in layers:
            outcome = _with_layer(outcome, layer)
        if outcome.difference is None and trial.dtype == torch.float64:
            outcome = _with_run(outcome, layers)
        return outcome


def _case(trial: Trial, recipe: Recipe) -> Case:
    return Case(recipe, trial.algorithm, trial.problem, trial.seed)


def _with_layer(outcome: TrialOutcome, layer: ComparedLayer) -> TrialOutcome:
    """Return the outcome with one more layer."""
    trial = outcome.trial
    found = _assignment(trial, layer) or _weight(trial, layer)
    away = np.abs(layer.found - layer.expected).max(axis=1) / trial.problem.spread
    far = ~(away <= TOLERANCE[trial.dtype])
    if far.any() and found is None:
        if away.max() <= _variation(trial, layer.number, layer.start, layer.chosen, layer.sure):
            return replace(outcome, undecided=outcome.undecided + 1)
        found = _center(trial, layer, int(far.argmax()))
    worst = float(np.maximum(outcome.deviation, away.max()))
    return replace(outcome, deviation=worst, difference=outcome.difference or found)


def _assignment(trial: Trial, layer: ComparedLayer) -> FirstDifference | None:
    """Return the first point whose shares differ, if the algorithm has assignments."""
    if isinstance(trial.algorithm, StepAlgorithm):
        return None
    off = np.abs(layer.attention - layer.assignments).max(axis=1)
    differ = layer.sure & ~(off <= SHARE_TOLERANCE[trial.dtype])
    if differ.any():
        varies = share_variation(trial.algorithm, trial.problem, layer.start, trial.dtype)
        exact = are_exact(trial.algorithm, trial.problem.points, layer.start, trial.dtype)
        differ &= exact | ~(off <= varies)
    if not differ.any():
        return None
    i = int(differ.argmax())
    return FirstDifference(
        "assignment", layer.number, i, None, layer.assignments[i], layer.attention[i], layer.start,
        trial, layer,
    )  # fmt: skip


def _weight(trial: Trial, layer: ComparedLayer) -> FirstDifference | None:
    """Return the first center that weighs a point, in one of the two, or does not."""
    if not layer.wrong.any():
        return None
    j, i = np.argwhere(layer.wrong)[0].tolist()
    return FirstDifference(
        "weight", layer.number, i, j, float(layer.weights[j, i]), float(layer.decoder[j, i]),
        layer.start, trial, layer,
    )  # fmt: skip


def _center(trial: Trial, layer: ComparedLayer, j: int) -> FirstDifference:
    return FirstDifference(
        "center", layer.number, None, j, layer.expected[j], layer.found[j], layer.start, trial,
        layer,
    )  # fmt: skip


def _with_run(outcome: TrialOutcome, layers: list[ComparedLayer]) -> TrialOutcome:
    """Return the outcome with a run over all layers, from the same initial centers.

    It ends before the first layer that rounding decides, or that the algorithm leaves undefined.
    """
    trial = outcome.trial
    points, centers = trial.problem.points, trial.problem.centers
    history = algorithms.run(trial.algorithm, points, centers, trial.n_layers)
    circuit = Circuit(trial.recipe, points.shape[1], len(centers))
    run = circuit(points, centers, trial.n_layers, seed=trial.seed).centers.numpy()
    for t in range(trial.n_layers):
        start, expected = history.centers[t : t + 2]
        if not np.isfinite(expected).all():
            return replace(outcome, undefined=trial.n_layers - t)
        away = np.abs(run[t + 1] - expected).max(axis=1) / trial.problem.spread
        far = ~(away <= TOLERANCE[trial.dtype])
        if far.any() and not _is_decided(trial, history, layers, t, float(away.max())):
            return replace(outcome, undecided=outcome.undecided + 1)
        outcome = replace(outcome, deviation=float(np.maximum(outcome.deviation, away.max())))
        if far.any():
            j = int(far.argmax())
            found = FirstDifference("center", t, None, j, expected[j], run[t + 1, j], start, trial)
            return replace(outcome, difference=found)
    return outcome


def _is_decided(
    trial: Trial, history: algorithms.History, layers: list[ComparedLayer], t: int, away: float
) -> bool:
    """Is rounding unable to change the layers up to this one by as much?"""
    for i in range(t + 1):
        if layers and not layers[i].sure.all():
            return False
        if isinstance(trial.recipe, Recipe) and not is_decided(
            _case(trial, trial.recipe), history, i, trial.dtype
        ):
            return False
        sure = np.ones(len(trial.problem.points), bool)
        if away <= _variation(trial, i, history.centers[i], history.assignments[i], sure):
            return False
    return True


def _variation(
    trial: Trial, t: int, centers: ndarray, assignments: ndarray, sure: ndarray
) -> float:
    """Return how much rounding may change the new centers.

    Assignments that are not sure are given. Nothing changes if all scores are exact: ties are then
    ties in every computation.
    """
    points, algorithm = trial.problem.points, trial.algorithm
    if isinstance(trial.recipe, Recipe) and are_exact(algorithm, points, centers, trial.dtype):
        return 0.0

    def update(points: ndarray, centers: ndarray) -> ndarray:
        shares = np.where(sure[:, None], algorithm.assign(points, centers), assignments)
        return algorithm.place(points, algorithm.weigh(points, centers, shares, t))

    return center_variation(update, trial.problem, centers, trial.dtype)
