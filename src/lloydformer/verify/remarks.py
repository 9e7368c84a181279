"""The remarks: model size, other parameters of the same algorithm, finite temperatures."""

from dataclasses import replace

import numpy as np
import torch
from scipy.stats import ortho_group

from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.projections import on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import POSITION
from lloydformer.verify.finding import Finding, Statement, equality
from lloydformer.verify.finite_temperature import (
    FEWER_LAYERS,
    N_LAYERS,
    figure_problem,
    lloyd_difference,
    median_weight_on_itself,
    run_in_encoder_cross,
    run_in_every_head,
    run_lloyd,
)
from lloydformer.verify.problems import CONTINUOUS, draw


def size(rng: np.random.Generator) -> Finding:
    """The number of nonzero entries is 6 (d + k), for every n and T."""
    sizes = [(int(d), int(k)) for d, k in rng.integers(1, 60, size=(30, 2))]
    counts = [sum(int(b.count_nonzero()) for b in Circuit(recipes.lloyd(), d, k).buffers())
              for d, k in sizes]  # fmt: skip
    off = [float(abs(count - 6 * (d + k))) for count, (d, k) in zip(counts, sizes, strict=True)]
    return equality("rem:trf-size", "lloyd() has 6 (d + k) weights that are not zero", off,
                    "dense matrices hold 12 (d + k)^2 entries")  # fmt: skip


def other_parameters(rng: np.random.Generator) -> Finding:
    """R Q and R K in place of Q and K, with R orthogonal, give the same algorithm."""

    def deviation(recipe: Recipe) -> float:
        problem = draw(rng, CONTINUOUS[rng.integers(2)], n=(50, 150), d=(2, 10))
        points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
        circuit = Circuit(recipe, points.shape[1], len(centers))
        before = circuit(points, centers).centers
        for slot in recipe.heads:
            head = getattr(circuit.layers[0], slot)
            turn = torch.tensor(ortho_group.rvs(circuit.space.dim, random_state=rng))
            head.query, head.key = turn @ head.query, turn @ head.key
        return (circuit(points, centers).centers - before).abs().max().item() / problem.spread

    made = (recipes.lloyd(), recipes.lloyd_dot(), recipes.soft())
    return equality("rem:inf-params", "random rotations of Q and K give the same algorithm",
                    [deviation(recipe) for recipe in made for _ in range(10)])  # fmt: skip


def absorbed_temperature(rng: np.random.Generator) -> Finding:
    """sqrt(gamma) in Q and K is gamma in the soft-max (sec:results:lloyds)."""

    def deviation() -> float:
        problem, gamma = draw(rng, "uniform"), float(10 ** rng.uniform(-1, 1))
        scaled = gamma**0.5 * on(POSITION)
        absorbed = replace(recipes.soft(1.0).encoder_cross, query=scaled, key=scaled)
        pair = recipes.soft(gamma), replace(recipes.soft(1.0), encoder_cross=absorbed)
        points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
        first, second = (
            Circuit(r, points.shape[1], len(centers))(points, centers).centers for r in pair
        )
        return (first - second).abs().max().item() / problem.spread

    return equality("sec:results:lloyds", "gamma can be absorbed into Q and K",
                    [deviation() for _ in range(20)])  # fmt: skip


def finite_temperature(rng: np.random.Generator) -> Finding:
    """gamma = 10^4 in the encoder's cross-attention, linear in the decoder's, else limits.

    On the problem that `reproduce numerical-validation` shows, whatever the seed.
    """
    problem = figure_problem()
    found = lloyd_difference(run_lloyd(*problem), run_in_encoder_cross(*problem))
    return Finding("fig:numerical_validation",
                   "gamma = 10^4 in encoder_cross follows Lloyd's to the eye", 1, found.centers,
                   found.labels[-1], found.same_to_the_eye,
                   f"{N_LAYERS} layers; {found.labels[-1]} of {found.of} final labels differ, and "
                   f"{sum(found.labels)} in all layers")  # fmt: skip


def all_finite(rng: np.random.Generator) -> Finding:
    """gamma = 10^4 in every head: self-attention is not the identity, and the circuit fails."""
    problem = figure_problem()
    trace = run_in_every_head(*problem)
    found = lloyd_difference(run_lloyd(*problem, FEWER_LAYERS), trace)
    itself = median_weight_on_itself(trace)
    return Finding("errata 11", "gamma = 10^4 in every head does not", 1, found.centers,
                   found.labels[-1], not found.same_to_the_eye and itself < 0.5,
                   f"{FEWER_LAYERS} layers; a point's median weight on itself is {itself:.2g}"
                   )  # fmt: skip


REMARKS: tuple[Statement, ...] = (
    size, other_parameters, absorbed_temperature, finite_temperature, all_finite,
)  # fmt: skip
