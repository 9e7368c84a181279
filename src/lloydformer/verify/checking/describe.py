"""Words for a difference: both values, what they come from, and why it is not rounding."""

from collections.abc import Iterator

import numpy as np
import torch
from numpy import ndarray

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.verify.checking.trial import SHARE_TOLERANCE, FirstDifference, Trial, quiet
from lloydformer.verify.compare import ComparedLayer
from lloydformer.verify.margins import (
    are_exact,
    assignment_scores,
    margins,
    rounding,
    score_rounding,
)
from lloydformer.verify.user_algorithm import GuardedAlgorithm, StepAlgorithm

MANY = 8
"""Numbers of a row that are shown at most."""


def describe(difference: FirstDifference) -> list[str]:
    """Return lines with both values, what they were computed from, and why it is not rounding."""
    lines = {"assignment": _assignment, "weight": _weight, "center": _center}[difference.kind]
    return list(lines(difference))


def _assignment(difference: FirstDifference) -> Iterator[str]:
    trial, i = difference.trial, difference.point
    given, start = trial.problem.points, difference.start
    yield f"algorithm: {_shares(difference.expected)}"
    yield f"circuit:   {_shares(difference.found)}"
    scores = assignment_scores(trial.algorithm, given, start)[i]
    own = hasattr(trial.algorithm, "scores")
    yield f"{'scores' if own else 'squared distances'} of the point to the centers: " + row(
        scores if own else -scores
    )
    by_circuit = _circuit_scores(trial, start)
    if by_circuit is not None:
        yield f"the circuit's scores of the point: {row(by_circuit[i])}"
    margin = margins(scores[None])[0]
    error = score_rounding(trial.algorithm, given, start, trial.dtype)
    if are_exact(trial.algorithm, given, start, trial.dtype) and margin == 0:
        yield "the best two are equal, and the numbers are exact: the rule for ties decides"
    else:
        yield f"the best two differ by {margin:.3g}, rounding errors are at most {error:.1e}"


def _weight(difference: FirstDifference) -> Iterator[str]:
    yield f"algorithm: weight {number(difference.expected)}"
    yield f"circuit:   weight {number(difference.found)}"
    trial, layer, points = difference.trial, difference.compared, difference.trial.problem.points
    if layer is not None and isinstance(trial.algorithm, GuardedAlgorithm):
        scores, cuts = trial.algorithm.decision(points, layer.start, layer.chosen, layer.number)
        score, cut = scores[difference.center, difference.point], cuts[difference.center]
        error = rounding(points, layer.start, trial.dtype)
        yield f"the algorithm's score of the point is {number(score)}, its cut {number(cut)}; " + (
            f"rounding errors are at most {error:.1e}"
        )


def _center(difference: FirstDifference) -> Iterator[str]:
    away = np.abs(difference.found - difference.expected).max() / difference.trial.problem.spread
    yield f"algorithm: {row(difference.expected)}"
    yield f"circuit:   {row(difference.found)}"
    if np.isnan(difference.found).any():
        yield "the circuit's center is not a number: its weights are 0/0"
    else:
        yield f"they differ by {away:.3g} of the spread of the points"
    if difference.compared is not None and difference.center is not None:
        yield from _weights(difference.trial, difference.compared, difference.center)


def _weights(trial: Trial, layer: ComparedLayer, j: int) -> Iterator[str]:
    """Yield what is known of the points' weights for a new center."""
    few, step = len(trial.problem.points) <= MANY, isinstance(trial.algorithm, StepAlgorithm)
    if few and not step:
        yield f"weights of the points, algorithm: {row(layer.weights[j])}"
    if few:
        yield f"weights of the points, circuit:   {row(layer.decoder[j])}"
    if not step:
        off = np.abs(layer.weights[j] - layer.decoder[j])
        i = int(off.argmax())
        if off[i] <= SHARE_TOLERANCE[trial.dtype]:
            yield "the weights are equal: the value, decoder_self or what comes after them differs"
        elif not few:
            both = f"{number(layer.weights[j, i])} and {number(layer.decoder[j, i])}"
            yield f"weights differ most for point {i}: {both}"
    if not (layer.assignments.argmax(axis=1) == j).any():
        yield "no point belongs to this center: docs/errata.md, 6, says what circuits do then"


def _circuit_scores(trial: Trial, start: ndarray) -> ndarray | None:
    """Return the scores of the encoder's cross-attention, (n, k)."""
    if not isinstance(trial.recipe, Recipe):
        return None
    points, centers = (
        torch.tensor(rows, dtype=trial.dtype) for rows in (trial.problem.points, start)
    )
    name = "layers.0.encoder_cross.scores"
    with quiet():
        circuit = Circuit(trial.recipe, points.shape[1], len(centers))
        scores: ndarray = circuit(points, centers, 1, keep=name, seed=trial.seed)[name].numpy()
    return scores


def _shares(given: ndarray | float) -> str:
    shares = np.asarray(given)
    if sorted(shares) == [0.0] * (len(shares) - 1) + [1.0]:
        return f"center {shares.argmax()}"
    return f"shares {row(shares)} in the centers"


def row(given: ndarray | float) -> str:
    """Return the first numbers of a row."""
    values = np.atleast_1d(given)
    more = f" ... ({len(values)} in all)" if len(values) > MANY else ""
    return " ".join(map(number, values[:MANY])) + more


def number(value: float | ndarray) -> str:
    """Return a number with six digits."""
    return f"{float(value) + 0.0:.6g}"  # 0 and not -0
