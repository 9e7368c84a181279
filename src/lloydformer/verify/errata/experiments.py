"""Where the text describes an experiment otherwise than its numbers show."""

from dataclasses import replace

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.scores import Euclidean
from lloydformer.learning.objective import expanded_distances
from lloydformer.learning.tasks import Tasks
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, small_problems

INITIAL = {
    "normal": 6.3430, "cauchy": 3.4078, "gumbel": 6.2408, "laplace": 6.0447, "lognormal": 6.2965,
}  # fmt: skip
"""The initial objectives of tab:mix-res, which depend on the tasks and not on what is trained."""

CLOSE = 0.1
"""Differences up to this are chance: the means here have standard errors of about 0.02."""


def e_21_tasks_and_scores(rng: np.random.Generator) -> Finding:
    """tab:mix-res has mixtures with equal weights and scales; decoder scores may be either."""
    seed = int(rng.integers(2**31))
    text = [_from_table(name, seed, "random") for name in INITIAL]
    runs = [_from_table(name, seed, "equal") for name in INITIAL]
    least = min((away for away in text if away > CLOSE), default=0.0)
    scores = [_with_euclidean_decoder(p) for p in small_problems(rng, 20)]
    return erratum(
        21, "runs", "the text has mixtures of random weights and scales, and the runs equal ones",
        [away if away > CLOSE else 0.0 for away in text],
        [away if away > CLOSE else 0.0 for away in runs] + scores,
        "initial objective of tab:mix-res: random ones are off in {count} families, by up to "
        f"{{worst}}, equal ones by up to {max(runs):.1g}",
        f"random ones are off by at least {least:.2g} there; with "
        f"Euclidean scores in the decoder too the construction is off by {max(scores):.0e}",
    )  # fmt: skip


def _from_table(family: str, seed: int, kind: str) -> float:
    """Return how far the mean log objective of 160 initial centers is from the table's."""
    tasks = Tasks(weights=kind, scales=kind)
    points, centers = tasks.draw((family,), torch.tensor([seed]), torch.tensor(0), size=160)
    objectives = expanded_distances(points, centers).amin(dim=-1).sum(dim=-1)
    return abs(objectives.log().mean().item() - INITIAL[family])


def _with_euclidean_decoder(problem: Problem) -> float:
    """Return how far lloyd() with Euclidean scores in all heads is from Lloyd's algorithm."""
    recipe = recipes.lloyd()
    recipe = replace(
        recipe,
        decoder_cross=replace(recipe.decoder_cross, score=Euclidean()),
        decoder_self=replace(recipe.decoder_self, score=Euclidean()),
    )
    return deviation_from(circuit_for(recipe, problem), algorithms.Lloyd(), problem)


EXPERIMENTS: tuple[Statement, ...] = (e_21_tasks_and_scores,)
