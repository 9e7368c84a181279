"""The first difference of a circuit and a plain algorithm, on one problem."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.circuits.recipe import Recipe
from lloydformer.paper.verify.checking.user_algorithm import StepAlgorithm
from lloydformer.paper.verify.compare import (
    ComparedLayer,
    circuit_for,
    compare_layers,
    has_clear_cuts,
    variation_of_layer,
)
from lloydformer.paper.verify.rounding import (
    are_exact,
    assignment_scores,
    margins,
    share_variation,
)
from lloydformer.paper.verify.trials import Trial

# Largest difference that counts as equal: of centers, in spreads, and of a point's shares in the
# centers. Those of float32 were chosen by hand.
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-3}
SHARE_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}


@dataclass(frozen=True)
class FirstDifference:
    """The first difference of a circuit from its algorithm on a problem.

    Attributes
    ----------
    kind : str
        What differs: the shares of a point in the centers ("assignment"), whether a point has
        weight for a new center ("weight"), or a new center ("center").
    layer : int
        The layer, counted from 0.
    point, center : int or None
        The point or the center, or both, that it is about.
    expected, found : ndarray or float
        The value of the algorithm, and that of the circuit.
    start : ndarray
        The centers before the layer.
    trial : Trial
        The problem.
    compared : ComparedLayer or None
        The layer, started from the algorithm's centers; None if the difference appears only in a
        run over all layers.
    """

    kind: Literal["assignment", "weight", "center"]
    layer: int
    point: int | None
    center: int | None
    expected: ndarray | float
    found: ndarray | float
    start: ndarray
    trial: Trial
    compared: ComparedLayer | None = None

    @property
    def nature(self) -> tuple[str, bool, bool, bool]:
        """The traits that a smaller problem with the same difference must share.

        The kind; whether it appears only in a run; whether the point is tied between centers, or
        the center has no points; whether the circuit's value is not a number.
        """
        layer, start, i = self.compared, self.start, self.point
        is_special = False
        if self.kind == "assignment" and i is not None:
            scores = assignment_scores(self.trial.algorithm, self.trial.problem.points, start)
            is_special = bool(margins(scores)[i] == 0)
        if self.kind == "center" and layer is not None:
            is_special = not (layer.assignments.argmax(axis=1) == self.center).any()
        return self.kind, layer is None, is_special, bool(np.isnan(self.found).any())


@dataclass(frozen=True)
class TrialOutcome:
    """The comparison on one problem.

    Attributes
    ----------
    trial : Trial
        The problem.
    difference : FirstDifference or None
        The first difference.
    deviation : float
        Largest difference of centers, in spreads, where rounding does not decide it.
    undecided : int
        Number of layers that rounding decides.
    undefined : int
        Number of layers that are left out because the algorithm's centers are not numbers.
    """

    trial: Trial
    difference: FirstDifference | None = None
    deviation: float = 0.0
    undecided: int = 0
    undefined: int = 0


@contextmanager
def ignore_nan_warnings() -> Iterator[None]:
    """Silence warnings of what is not a number: it is reported as a difference."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def compare_trial(trial: Trial) -> TrialOutcome:
    """Compare layer by layer from the algorithm's centers, and in a run over all layers.

    The run is compared in float64 only, and as far as rounding cannot change a decision.
    """
    with ignore_nan_warnings():
        outcome, layers = TrialOutcome(trial), []
        if isinstance(trial.recipe, Recipe):
            layers = compare_layers(trial)
            outcome = TrialOutcome(trial, undefined=trial.n_layers - len(layers))
        for layer in layers:
            outcome = _add_layer(outcome, layer)
        # rounding errors of a run add up: in float32 they cannot be told from a mistake
        if outcome.difference is None and trial.dtype == torch.float64:
            outcome = _add_run(outcome, layers)
        return outcome


def _add_layer(outcome: TrialOutcome, layer: ComparedLayer) -> TrialOutcome:
    """Return the outcome with one more layer."""
    trial, t = outcome.trial, layer.number
    found = _find_assignment(trial, layer)
    if found is None and layer.wrong.any():
        j, i = np.argwhere(layer.wrong)[0].tolist()
        values = float(layer.weights[j, i]), float(layer.decoder[j, i])
        found = FirstDifference("weight", t, i, j, *values, layer.start, trial, layer)
    away = np.abs(layer.found - layer.expected).max(axis=1) / trial.problem.spread
    far = ~(away <= TOLERANCE[trial.dtype])  # not >, so that a NaN is far
    if far.any() and found is None:
        if away.max() <= variation_of_layer(trial, t, layer.start, layer.chosen, layer.sure):
            return replace(outcome, undecided=outcome.undecided + 1)
        j = int(far.argmax())
        values = layer.expected[j], layer.found[j]
        found = FirstDifference("center", t, None, j, *values, layer.start, trial, layer)
    worst = float(np.maximum(outcome.deviation, away.max()))
    return replace(outcome, deviation=worst, difference=outcome.difference or found)


def _find_assignment(trial: Trial, layer: ComparedLayer) -> FirstDifference | None:
    """Return the first point whose shares differ, if the algorithm has assignments."""
    if isinstance(trial.algorithm, StepAlgorithm):
        return None
    off = np.abs(layer.attention - layer.assignments).max(axis=1)
    differ = layer.sure & ~(off <= SHARE_TOLERANCE[trial.dtype])
    if differ.any():
        varies = share_variation(trial.algorithm, trial.problem, layer.start, trial.dtype)
        exact = are_exact(trial.algorithm, trial.problem.points, layer.start, trial.dtype)
        # soft shares of a cold recipe change with the last digits; exact ones must agree
        differ &= exact | ~(off <= varies)
    if not differ.any():
        return None
    i = int(differ.argmax())
    values = layer.assignments[i], layer.attention[i]
    return FirstDifference("assignment", layer.number, i, None, *values, layer.start, trial, layer)


def _add_run(outcome: TrialOutcome, layers: list[ComparedLayer]) -> TrialOutcome:
    """Return the outcome with a run over all layers, from the same initial centers.

    It ends before the first layer that rounding decides, or that the algorithm leaves undefined.
    """
    trial, problem = outcome.trial, outcome.trial.problem
    history = algorithms.run(trial.algorithm, problem.points, problem.centers, trial.n_layers)
    circuit = circuit_for(trial.recipe, problem)
    trace = circuit(problem.points, problem.centers, trial.n_layers, seed=trial.seed)
    run = trace.centers.numpy()
    for t in range(trial.n_layers):
        start, expected = history.centers[t : t + 2]
        if not np.isfinite(expected).all():
            return replace(outcome, undefined=trial.n_layers - t)
        away = np.abs(run[t + 1] - expected).max(axis=1) / problem.spread
        far = ~(away <= TOLERANCE[trial.dtype])
        # a decision of rounding is looked for only where there is a difference: it takes time
        if far.any() and not _is_beyond_rounding(trial, history, layers, t, float(away.max())):
            return replace(outcome, undecided=outcome.undecided + 1)
        outcome = replace(outcome, deviation=float(np.maximum(outcome.deviation, away.max())))
        if far.any():
            j = int(far.argmax())
            found = FirstDifference("center", t, None, j, expected[j], run[t + 1, j], start, trial)
            return replace(outcome, difference=found)
    return outcome


def _is_beyond_rounding(
    trial: Trial, history: algorithms.History, layers: list[ComparedLayer], t: int, away: float
) -> bool:
    """Return whether rounding cannot change the layers up to this one by as much."""
    for i in range(t + 1):
        # recipes of several stages have no compared layers
        if layers and not layers[i].sure.all():
            return False
        if isinstance(trial.recipe, Recipe) and not has_clear_cuts(trial, history, i):
            return False
        sure = np.ones(len(trial.problem.points), bool)
        if away <= variation_of_layer(trial, i, history.centers[i], history.assignments[i], sure):
            return False
    return True
