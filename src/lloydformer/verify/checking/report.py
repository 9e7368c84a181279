"""The lines that a result prints, and its values for JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from lloydformer.circuits.stages import AnyRecipe
from lloydformer.verify.checking.describe import describe, number
from lloydformer.verify.checking.trial import FirstDifference, TrialOutcome
from lloydformer.verify.problems import Problem

LARGE = 40
"""Points and centers are shown up to this many numbers."""


def verdict_lines(
    recipe: AnyRecipe, outcomes: Sequence[TrialOutcome], families: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return what was compared, and the agreement of each family."""
    trial, differ = outcomes[0].trial, sum(o.difference is not None for o in outcomes)
    verdict = f"differs from {trial.algorithm} on {differ} of" if differ else (
        f"agrees with {trial.algorithm} on"
    )  # fmt: skip
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
    shown = _points_and_centers(smallest.trial.problem)
    return [
        "",
        f"First difference: {family} problem {number} of seed {seed} {_sizes(first)}, "
        f"{_where(first)}",
        *(f"  {line}" for line in describe(first)),
        "",
        f"A small problem with such a difference: {_sizes(smallest)}, {_where(smallest)}",
        *(f"  {line}" for line in (*shown, *describe(smallest))),
        "",
        "To run the small problem again:",
        *(f"  {line}".rstrip() for line in code.splitlines()),
    ]


def as_values(difference: FirstDifference) -> dict[str, Any]:
    """Return a difference and its problem as values that JSON can hold."""
    trial, problem = difference.trial, difference.trial.problem
    return {
        "family": problem.family, "seed": trial.drawn[0], "number": trial.drawn[1],
        "n": len(problem.points), "d": problem.points.shape[1], "k": len(problem.centers),
        "kind": difference.kind, "layer": difference.layer, "point": difference.point,
        "center": difference.center, "only_in_run": difference.compared is None,
        "algorithm": _values(difference.expected), "circuit": _values(difference.found),
        "points": _values(problem.points), "centers": _values(problem.centers),
        "n_layers": trial.n_layers, "noise_seed": trial.seed, "text": describe(difference),
    }  # fmt: skip


def _values(numbers: ndarray | float) -> Any:
    """Return the numbers as lists, with None for what is not a number."""
    if np.ndim(numbers):
        return [_values(row) for row in np.asarray(numbers)]
    return json_number(float(numbers))


def json_number(value: float) -> float | None:
    """Return the number, or None if it is not one, which JSON cannot hold."""
    return value if np.isfinite(value) else None


def _sizes(difference: FirstDifference) -> str:
    problem = difference.trial.problem
    return f"(n {len(problem.points)}, d {problem.points.shape[1]}, k {len(problem.centers)})"


def _where(difference: FirstDifference) -> str:
    """Return the layer and the point or center of a difference."""
    run = " of a run over all layers" if difference.compared is None else ""
    point, center = f"point {difference.point}", f"center {difference.center}"
    part = {"assignment": point, "center": center, "weight": f"{point} for {center}"}
    return f"layer {difference.layer}{run}, {part[difference.kind]}"


def _points_and_centers(problem: Problem) -> list[str]:
    """Return points and centers as lines, if they are few."""
    if problem.points.size + problem.centers.size > LARGE:
        return []
    return [
        f"{name:8} " + " ".join(f"({', '.join(map(number, row))})" for row in rows)
        for name, rows in (("points", problem.points), ("centers", problem.centers))
    ]
