"""Items that only show with rounding: duplicates, and distances far from the origin."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import NOTHING, Context, LimitingSoftmax
from lloydformer.verify.errata.runs import (
    circuit_for,
    deviation_from,
    largest_difference,
    run_unchecked,
)
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, draw, with_centers


@dataclass(frozen=True)
class ExactMaximum(LimitingSoftmax):
    """Limiting soft-max as the text defines it: only keys bitwise equal to the maximum."""

    def __call__(self, scores: Tensor, context: Context = NOTHING) -> Tensor:
        return super().__call__(scores, NOTHING)


@dataclass(frozen=True)
class ByExpansion:
    """Euclidean scores as -|q|^2 + 2 qk - |k|^2."""

    symbol = "ℓ2"

    def __call__(self, queries: Tensor, keys: Tensor) -> Tensor:
        squares = queries.square().sum(-1, keepdim=True) + keys.square().sum(-1)[..., None, :]
        return 2 * queries @ keys.mT - squares


def _duplicated(rng: np.random.Generator) -> Problem:
    """Repeat every point up to eight times, so that a sum of m copies of 1/m is rounded."""
    problem = draw(rng, "uniform", n=(20, 60), d=(2, 8), k=(2, 6))
    points = np.repeat(problem.points, rng.integers(1, 9, size=len(problem.points)), axis=0)
    return replace(problem, points=points)


def e_07_duplicates(rng: np.random.Generator) -> Finding:
    """m copies of 1/m do not sum to 1, and the decoder's exact maximum then drops points."""
    recipe = recipes.lloyd("average")
    exact = replace(recipe.decoder_cross, activation=ExactMaximum())
    printed = replace(recipe, decoder_cross=exact)
    problems = [_duplicated(rng) for _ in range(60)]
    oracle = algorithms.Lloyd("average")
    return erratum(
        7, "rounding",
        "with duplicates an exact maximum drops points; use the tolerance 1/(2 k^2)",
        [deviation_from(circuit_for(printed, p), oracle, p) for p in problems],
        [deviation_from(circuit_for(recipe, p), oracle, p) for p in problems],
        "the paper's text (an exact maximum) fails {count}, by up to {worst} of the spread; our "
        "repair holds",
    )  # fmt: skip


def e_08_expansion(rng: np.random.Generator) -> Finding:
    """Self-attention needs the diagonal to be the exact maximum; an expansion breaks this."""
    base = recipes.lloyd()
    expanded = replace(
        base,
        encoder_cross=replace(base.encoder_cross, score=ByExpansion()),
        encoder_self=replace(base.encoder_self, score=ByExpansion()),
    )
    far = [_shifted(rng) for _ in range(30)]
    near = [_nearly_coincident(rng) for _ in range(30)]
    oracle = algorithms.Lloyd()
    printed = [
        largest_difference(run_unchecked(circuit_for(expanded, p), p), oracle, p)
        for p in far + near
    ]
    wrong = [sum(d > 1e-6 for d in part) for part in (printed[:30], printed[30:])]
    return erratum(
        8, "rounding",
        "|x|^2 - 2xx' + |x'|^2 loses the diagonal's maximum; use differences, centered",
        printed, [deviation_from(circuit_for(base, p), oracle, p) for p in far + near],
        "by expansion {count} fail, by up to {worst} of the spread; our repair holds",
        f"{wrong[0]} of 30 at shift 10^6, {wrong[1]} of 30 with points 10^-9 apart",
    )  # fmt: skip


def _nearly_coincident(rng: np.random.Generator) -> Problem:
    """Ten groups of ten points, 10^-9 in size; some group has more than one center."""
    groups = np.repeat(rng.uniform(size=(10, 3)), 10, axis=0)
    return with_centers(rng, groups + 1e-9 * rng.normal(size=groups.shape), 8, "tight groups")


def _shifted(rng: np.random.Generator) -> Problem:
    problem = draw(rng, "uniform", n=(100, 300), d=(2, 4), k=(2, 6))
    return replace(problem, points=problem.points + 1e6, centers=problem.centers + 1e6)


ROUNDING: tuple[Statement, ...] = (e_07_duplicates, e_08_expansion)
