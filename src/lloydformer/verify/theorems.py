"""The theorems that state 'this circuit is that algorithm', measured against the algorithm."""

from dataclasses import replace

import numpy as np
import torch
from scipy import stats

from lloydformer.circuits.activations import Ties
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.numerics import noise
from lloydformer.verify.cases import Case, case
from lloydformer.verify.compare import Deviation, free_running, layer_by_layer
from lloydformer.verify.finding import Finding, Statement, agreement
from lloydformer.verify.pairs import has_average_ties, is_spherical
from lloydformer.verify.problems import CONTINUOUS, FAMILIES

N_LAYERS = 10
PER_FAMILY = 8


def measure(rng: np.random.Generator, name: str, unit: str = "square") -> Deviation:
    """Compare layer by layer on all families and tie rules; continuous data also free-running."""
    total = Deviation(problems=0)
    rules: tuple[Ties, ...] = ("first", "average") if has_average_ties(name) else ("first",)
    for family in FAMILIES:
        if family == "shifted" and is_spherical(name):
            continue  # shifted points are not unit vectors
        for ties in rules:
            for _ in range(PER_FAMILY):
                total += layer_by_layer(_with_unit(case(rng, name, family, ties), unit), N_LAYERS)
    for family in CONTINUOUS:
        runs = [free_running(_with_unit(case(rng, name, family), unit), N_LAYERS) for _ in range(4)]
        total += sum((run for run in runs if run), Deviation(problems=0))
    return total


def _with_unit(given: Case, unit: str) -> Case:
    """Return the case with this hidden unit in the feed-forward network."""
    if unit == "square":
        return given
    return replace(given, recipe=replace(given.recipe, feedforward=Quadratic("rectified")))


def is_algorithm(label: str, statement: str, name: str, unit: str = "square") -> Statement:
    """Return the statement that the recipe equals its algorithm."""

    def check(rng: np.random.Generator) -> Finding:
        return agreement(label, statement, measure(rng, name, unit))

    check.__name__ = f"is_{name}_{unit}"
    return check


def medoid_draws(rng: np.random.Generator) -> Finding:
    """The index of the largest score plus Gumbel noise is a draw from the scores' soft-max."""
    scores = torch.tensor(rng.normal(size=6))
    rows, n_draws = torch.arange(6), 20_000
    draws = noise.gumbel(int(rng.integers(2**32)), 0, "decoder_cross", n_draws, rows) + scores
    counts = np.bincount(draws.argmax(dim=1).numpy(), minlength=6)
    p_value = stats.chisquare(counts, n_draws * scores.softmax(0).numpy()).pvalue
    return Finding(
        "alg:rnd-kmeds", "Gumbel attention draws from the categorical distribution", n_draws,
        float(np.abs(counts / n_draws - scores.softmax(0).numpy()).max()), 0, bool(p_value > 1e-6),
        f"chi-square p = {p_value:.2f}",
    )  # fmt: skip


THEOREMS: tuple[Statement, ...] = (
    is_algorithm("thm:l2-clus-eu", "lloyd() is Lloyd's algorithm, one layer an iteration", "lloyd"),
    is_algorithm("thm:l2-clus eu", "soft() is soft k-means", "soft"),
    is_algorithm("thm:l2-clus-ip-informal", "lloyd_dot() with rectified squares is Lloyd's",
                 "lloyd_dot", "rectified"),
    is_algorithm("thm:l2-clus ip", "lloyd_dot() with squares is Lloyd's", "lloyd_dot"),
    is_algorithm("thm:l2-clus ip (end)", "soft_dot() is soft k-means", "soft_dot"),
    is_algorithm("thm:sp-clus ip", "spherical('layer') is spherical k-means", "spherical_layer"),
    is_algorithm("rem:lnorm-rmsnorm", "spherical('rms') too, for any unit vectors", "spherical"),
    is_algorithm("alg:trim-kmeans", "trimmed() is trimmed k-means", "trimmed"),
    is_algorithm("alg:rob-kmeans", "robust() is robust k-means", "robust"),
    is_algorithm("eq rob update", "robust_lifted() is robust k-means", "robust_lifted"),
    is_algorithm("alg:rnd-kmeds", "medoids() is randomised k-medoids, draw for draw", "medoids"),
    medoid_draws,
    is_algorithm("later result", "lloyd_binary(), in d + ceil(log2 k) dimensions, is Lloyd's",
                 "lloyd_binary"),
)  # fmt: skip
