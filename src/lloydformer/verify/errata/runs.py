"""Run circuits without checks or centering, and measure their difference from an algorithm."""

import numpy as np
import torch
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.layer import LayerContext
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import POSITION
from lloydformer.verify.problems import Problem


def run_unchecked(circuit: Circuit, problem: Problem, n_layers: int = 10) -> ndarray:
    """Return the centers before each layer and after the last, without centering or checks."""
    points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
    assignments = points.new_zeros(len(points), len(centers))
    x, c = circuit.tokens.encoder(points, assignments), circuit.tokens.decoder(centers)
    history = [problem.centers]
    for _ in range(n_layers):
        x, c = circuit.layers[0](x, c, LayerContext())
        history.append(circuit.space.read(c, POSITION).numpy())
    return np.stack(history)


def circuit_for(recipe: Recipe, problem: Problem) -> Circuit:
    """Return a circuit of the recipe for the sizes of the problem."""
    return Circuit(recipe, problem.points.shape[1], len(problem.centers))


def deviation_from(
    circuit: Circuit,
    algorithm: algorithms.Algorithm,
    problem: Problem,
    n_layers: int = 10,
    seed: int | None = None,
) -> float:
    """Return the largest difference of the circuit's centers from the algorithm's, in spreads."""
    trace = circuit(
        torch.tensor(problem.points), torch.tensor(problem.centers), n_layers, seed=seed
    )
    return largest_difference(trace.centers.numpy(), algorithm, problem)


def largest_difference(
    centers: ndarray, algorithm: algorithms.Algorithm, problem: Problem
) -> float:
    """Return the largest difference of these centers from the algorithm's, in spreads."""
    history = algorithms.run(algorithm, problem.points, problem.centers, len(centers) - 1)
    return float(np.abs(centers - history.centers).max()) / problem.spread
