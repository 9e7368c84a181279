"""Algorithms that the text attributes to works which have others."""

from math import ceil

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits import recipes
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, small_problems


def fuzzy_step(
    points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"]
) -> Float[ndarray, "k d"]:
    """One iteration of fuzzy c-means, exponent 2: u = distance^-2, normalised; means with u^2."""
    inverse = 1 / np.maximum(squared_distances(points, centers), 1e-300)
    weights = (inverse / inverse.sum(axis=1, keepdims=True)) ** 2
    return weights.T @ points / weights.sum(axis=0)[:, None]


def e_17_soft_citation(rng: np.random.Generator) -> Finding:
    """alg:soft-kmeans is not fuzzy c-means for any gamma."""
    problems = small_problems(rng, 30)
    away = [_from_fuzzy(p) for p in problems]
    soft = [deviation_from(circuit_for(recipes.soft(gamma), p), algorithms.Soft(gamma), p, 1)
            for (_, gamma), p in zip(away, problems, strict=True)]  # fmt: skip
    return erratum(
        17, "citation", "soft k-means is not the fuzzy c-means of Dunn and Bezdek",
        [difference for difference, _ in away], soft,
        "one step differs in {count} problems, by up to {worst} of the spread",
        f"with the gamma nearest to fuzzy c-means of exponent 2; by "
        f"{np.mean([difference for difference, _ in away]):.2g} on average",
    )  # fmt: skip


def _from_fuzzy(problem: Problem) -> tuple[float, float]:
    """Return the least difference of a step from fuzzy c-means, and the gamma that attains it."""
    wanted = fuzzy_step(problem.points, problem.centers)
    gammas = np.logspace(-3, 3, 121) / problem.spread**2

    def difference(gamma: float) -> float:
        step = algorithms.run(algorithms.Soft(gamma), problem.points, problem.centers, 1)
        return float(np.abs(step.centers[-1] - wanted).max()) / problem.spread

    return min((difference(float(gamma)), float(gamma)) for gamma in gammas)


N_INLIERS, N_OUTLIERS = 90, 20
"""Of each of two clusters, and the outliers, which all lie on the side of the first."""


def e_18_trimming_citation(rng: np.random.Generator) -> Finding:
    """alg:trim-kmeans trims a share of each cluster, Cuesta-Albertos et al. of all points."""
    problems = [_one_sided(rng) for _ in range(20)]
    kept = [int(_kept_by_cluster(p)[-N_OUTLIERS:].sum()) for p in problems]
    others = [int(kept_overall(p.points, p.centers, 0.9)[-N_OUTLIERS:].sum()) for p in problems]
    return erratum(
        18, "citation", "trimming is by cluster; that of Cuesta-Albertos et al. is overall",
        [n / N_OUTLIERS for n in kept], [n / N_OUTLIERS for n in others],
        "with all outliers near one cluster some remain in {count} problems, a share of up to "
        "{worst} of them",
        f"10 % trimmed, {N_OUTLIERS} outliers near one cluster: by cluster {min(kept)} to "
        f"{max(kept)} of them are kept, overall {max(others)}",
    )  # fmt: skip


def _one_sided(rng: np.random.Generator) -> Problem:
    """Two clusters ten deviations apart, and outliers behind the first; true middles as start."""
    middles = np.array([[0.0, 0.0], [10.0, 0.0]])
    inliers = np.repeat(middles, N_INLIERS, axis=0) + rng.normal(size=(2 * N_INLIERS, 2))
    outliers = np.array([-30.0, 0.0]) + rng.normal(size=(N_OUTLIERS, 2))
    return Problem(np.concatenate([inliers, outliers]), middles, "outliers near one cluster")


def _kept_by_cluster(problem: Problem) -> Bool[ndarray, " n"]:
    """Return which points have weight in the first layer of trimmed(0.9)."""
    points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
    name = "layers.0.decoder_cross.attention"
    trace = circuit_for(recipes.trimmed(0.9), problem)(points, centers, 1, keep=name)
    return (trace[name] > 0).any(dim=0).numpy()


def kept_overall(
    points: Float[ndarray, "n d"], centers: Float[ndarray, "k d"], keep: float
) -> Bool[ndarray, " n"]:
    """Return which points are kept if the farthest of all points are trimmed."""
    nearest = squared_distances(points, centers).min(axis=1)
    return nearest <= np.sort(nearest)[ceil(keep * len(points) - 1e-9) - 1]


CITATIONS: tuple[Statement, ...] = (e_17_soft_citation, e_18_trimming_citation)
