"""The words of a result: the lines that it prints, code to run it again, and values for JSON."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy import ndarray

from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.paper.verify.checking.differences import (
    SHARE_TOLERANCE,
    FirstDifference,
    TrialOutcome,
    ignore_nan_warnings,
)
from lloydformer.paper.verify.checking.user_algorithm import GuardedAlgorithm, StepAlgorithm
from lloydformer.paper.verify.compare import run_circuit
from lloydformer.paper.verify.problems import Problem
from lloydformer.paper.verify.rounding import (
    are_exact,
    assignment_scores,
    distance_rounding,
    margins,
    score_rounding,
)

# Chosen by hand, so that lines stay short: numbers of a row that are shown at most, and the size
# up to which points and centers are shown.
MOST_NUMBERS, MOST_COORDINATES = 8, 40


def verdict_lines(
    recipe: AnyRecipe, outcomes: Sequence[TrialOutcome], families: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return what was compared, and the agreement of each family."""
    trial, differ = outcomes[0].trial, sum(o.difference is not None for o in outcomes)
    verdict = f"agrees with {trial.algorithm} on"
    if differ:
        verdict = f"differs from {trial.algorithm} on {differ} of"
    lines = [
        f"{recipe.name} {verdict} {len(outcomes)} problems, {trial.n_layers} layers each",
        "(deviation: largest difference of centers, in spreads of the points)",
    ]
    for name, row in families.items():
        defined = row["problems"] - row["undefined"]
        agree = f"{row['agree']} of {defined} agree" if defined else "nothing to compare"
        lines.append(f"  {name:11} {agree}   deviation {row['deviation']:.1e}")
    reasons = {
        "in which rounding decides": sum(o.undecided for o in outcomes),
        "in which the algorithm's centers are not numbers": sum(o.undefined for o in outcomes),
    }
    lines += [f"  left out: {n} layers {reason}" for reason, n in reasons.items() if n]
    return lines


def difference_lines(first: FirstDifference, smallest: FirstDifference, code: str) -> list[str]:
    """Return the first difference, the smallest problem that shows it, and its code."""
    family, (seed, number) = first.trial.problem.family, first.trial.drawn
    small, problem = describe(smallest), smallest.trial.problem
    if problem.points.size + problem.centers.size <= MOST_COORDINATES:
        for name in ("centers", "points"):  # each in front, so that points come first
            rows = [", ".join(map(format_number, row)) for row in getattr(problem, name)]
            small.insert(0, f"{name:8} " + " ".join(f"({row})" for row in rows))
    return [
        "",
        f"First difference: {family} problem {number} of seed {seed} {_format_place(first)}",
        *(f"  {line}" for line in describe(first)),
        "",
        f"A small problem with such a difference: {_format_place(smallest)}",
        *(f"  {line}" for line in small),
        "",
        "To run the small problem again:",
        *(f"  {line}".rstrip() for line in code.splitlines()),
    ]


def describe(difference: FirstDifference) -> list[str]:
    """Return lines with both values, what they were computed from, and why it is not rounding."""
    lines = {
        "assignment": describe_assignment,
        "weight": describe_weight,
        "center": describe_center,
    }
    return list(lines[difference.kind](difference))


def describe_assignment(difference: FirstDifference) -> Iterator[str]:
    trial, i = difference.trial, difference.point
    points, start = trial.problem.points, difference.start
    yield f"algorithm: {_format_shares(difference.expected)}"
    yield f"circuit:   {_format_shares(difference.found)}"
    scores = assignment_scores(trial.algorithm, points, start)[i]
    if hasattr(trial.algorithm, "scores"):
        yield f"scores of the point to the centers: {format_row(scores)}"
    else:
        yield f"squared distances of the point to the centers: {format_row(-scores)}"
    if isinstance(trial.recipe, Recipe):
        name = "layers.0.encoder_cross.scores"
        # one layer from the centers before the difference has the scores that led to it
        problem = Problem(points, start, trial.problem.family)
        with ignore_nan_warnings():
            trace = run_circuit(
                trial.recipe, problem, 1, seed=trial.seed, names_filter=name, dtype=trial.dtype
            )
        yield f"the circuit's scores of the point: {format_row(trace[name].numpy()[i])}"
    margin = margins(scores[None])[0]
    if are_exact(trial.algorithm, points, start, trial.dtype) and margin == 0:
        yield "the best two are equal, and the numbers are exact: the rule for ties decides"
    else:
        error = score_rounding(trial.algorithm, points, start, trial.dtype)
        yield f"the best two differ by {margin:.3g}, rounding errors are at most {error:.1e}"


def describe_weight(difference: FirstDifference) -> Iterator[str]:
    trial, layer, points = difference.trial, difference.compared, difference.trial.problem.points
    yield f"algorithm: weight {format_number(difference.expected)}"
    yield f"circuit:   weight {format_number(difference.found)}"
    if layer is not None and isinstance(trial.algorithm, GuardedAlgorithm):
        scores, cuts = trial.algorithm.decision(points, layer.start, layer.chosen, layer.number)
        score = format_number(scores[difference.center, difference.point])
        error = distance_rounding(points, layer.start, trial.dtype)
        yield (
            f"the algorithm's score of the point is {score}, its cut "
            f"{format_number(cuts[difference.center])}; rounding errors are at most {error:.1e}"
        )


def describe_center(difference: FirstDifference) -> Iterator[str]:
    # in spreads, as the tolerance is
    away = np.abs(difference.found - difference.expected).max() / difference.trial.problem.spread
    yield f"algorithm: {format_row(difference.expected)}"
    yield f"circuit:   {format_row(difference.found)}"
    if np.isnan(difference.found).any():
        yield "the circuit's center is not a number: its weights are 0/0"
    else:
        yield f"they differ by {away:.3g} of the spread of the points"
    trial, layer, j = difference.trial, difference.compared, difference.center
    if layer is None or j is None:
        return
    are_few = len(trial.problem.points) <= MOST_NUMBERS
    # a step function returns centers only
    has_weights = not isinstance(trial.algorithm, StepAlgorithm)
    if are_few and has_weights:
        yield f"weights of the points, algorithm: {format_row(layer.weights[j])}"
    if are_few:
        yield f"weights of the points, circuit:   {format_row(layer.decoder[j])}"
    if has_weights:
        off = np.abs(layer.weights[j] - layer.decoder[j])
        i = int(off.argmax())
        if off[i] <= SHARE_TOLERANCE[trial.dtype]:
            yield "the weights are equal: the value, decoder_self or what comes after them differs"
        elif not are_few:
            both = f"{format_number(layer.weights[j, i])} and {format_number(layer.decoder[j, i])}"
            yield f"weights differ most for point {i}: {both}"
    if not (layer.assignments.argmax(axis=1) == j).any():
        yield "no point belongs to this center: docs/errata.md, 6, says what circuits do then"


def _format_shares(given: ndarray | float) -> str:
    shares = np.asarray(given)
    # a point of one center: its number is easier to read than a row of zeros
    if sorted(shares) == [0.0] * (len(shares) - 1) + [1.0]:
        return f"center {shares.argmax()}"
    return f"shares {format_row(shares)} in the centers"


def format_row(given: ndarray | float) -> str:
    """Return the first numbers of a row."""
    values = np.atleast_1d(given)
    more = f" ... ({len(values)} in all)" if len(values) > MOST_NUMBERS else ""
    return " ".join(map(format_number, values[:MOST_NUMBERS])) + more


def format_number(value: float | ndarray) -> str:
    """Return a number with six digits."""
    return f"{float(value) + 0.0:.6g}"  # 0 and not -0


def _format_place(difference: FirstDifference) -> str:
    """Return the sizes of the problem, and the layer and the point or center of a difference."""
    problem = difference.trial.problem
    sizes = f"(n {len(problem.points)}, d {problem.points.shape[1]}, k {len(problem.centers)})"
    run = " of a run over all layers" if difference.compared is None else ""
    point, center = f"point {difference.point}", f"center {difference.center}"
    part = {"assignment": point, "center": center, "weight": f"{point} for {center}"}
    return f"{sizes}, layer {difference.layer}{run}, {part[difference.kind]}"


def snippet(difference: FirstDifference, known: bool) -> str:
    """Return Python code that runs both on the problem; it takes `recipe` and `algorithm`.

    known: whether the algorithm is that of `known_algorithm`; the code then makes it.
    """
    trial, problem, algorithm = (
        difference.trial,
        difference.trial.problem,
        difference.trial.algorithm,
    )
    dtype = ", np.float32" if trial.dtype == torch.float32 else ""
    lines = ["import numpy as np", "import lloydformer as lf"]
    if not isinstance(algorithm, StepAlgorithm):
        lines.append("from lloydformer import algorithms")
    if known:
        lines.append("from lloydformer.paper.verify.known import known_algorithm")
    lines.append("")
    # repr of floats, so that the numbers are the same to the last bit
    for name in ("points", "centers"):
        lines.append(f"{name} = np.array({getattr(problem, name).tolist()}{dtype})")
    if known:
        lines.append(f"algorithm = known_algorithm(recipe, seed={trial.seed})")
    n_features, n_clusters = problem.points.shape[1], len(problem.centers)
    lines += [
        f"circuit = lf.Circuit(recipe, n_features={n_features}, n_clusters={n_clusters})",
        f"trace = circuit(points, centers, n_layers={trial.n_layers}, seed={trial.seed})",
    ]
    if isinstance(algorithm, StepAlgorithm):
        iteration = ", iteration" if algorithm.takes_iteration else ""
        lines += [
            "new = centers",
            f"for iteration in range({trial.n_layers}):",
            f"    new = algorithm(points, new{iteration})",
            "print(trace.centers[-1].numpy())  # the circuit",
            "print(new)  # the algorithm",
        ]
    else:
        # both are arrays of the same shape, so that the difference is seen at once
        last = "assignments" if difference.kind == "assignment" else "centers"
        lines += [
            f"history = algorithms.run(algorithm, points, centers, {trial.n_layers})",
            f"print(trace.{last}[-1].numpy())  # the circuit",
            f"print(history.{last}[-1])  # the algorithm",
        ]
    return "\n".join(lines)


def as_json_values(difference: FirstDifference) -> dict[str, Any]:
    """Return a difference and its problem as values that JSON can hold."""
    trial, problem = difference.trial, difference.trial.problem
    return {
        "family": problem.family,
        "seed": trial.drawn[0],
        "number": trial.drawn[1],
        "n": len(problem.points),
        "d": problem.points.shape[1],
        "k": len(problem.centers),
        "kind": difference.kind,
        "layer": difference.layer,
        "point": difference.point,
        "center": difference.center,
        "only_in_run": difference.compared is None,
        "algorithm": _json_numbers(difference.expected),
        "circuit": _json_numbers(difference.found),
        "points": _json_numbers(problem.points),
        "centers": _json_numbers(problem.centers),
        "n_layers": trial.n_layers,
        "noise_seed": trial.seed,
        "text": describe(difference),
    }


def _json_numbers(numbers: ndarray | float) -> Any:
    """Return the numbers as lists, with None for what is not a number."""
    if np.ndim(numbers):
        return [_json_numbers(row) for row in np.asarray(numbers)]
    return json_number(float(numbers))


def json_number(value: float) -> float | None:
    """Return the number, or None if it is not one, which JSON cannot hold."""
    return value if np.isfinite(value) else None
