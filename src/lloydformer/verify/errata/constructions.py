"""Errors in the constructions: matrices, networks and formulas as printed."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Linear
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.projections import lifting, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION, SQUARED_NORM
from lloydformer.circuits.tokens import Tokens
from lloydformer.numerics.distances import squared_distances
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, draw, on_sphere

N_PROBLEMS = 60


def _problems(rng: np.random.Generator, n: int = N_PROBLEMS) -> list[Problem]:
    return [draw(rng, "uniform", n=(20, 120), d=(2, 8), k=(2, 6)) for _ in range(n)]


def e_01_rectified_square(rng: np.random.Generator) -> Finding:
    """d hidden units with [z]_+^2 drop negative coordinates; 2d units do not."""
    recipe = replace(recipes.lloyd_dot(), feedforward=Quadratic("rectified"))

    def printed(problem: Problem) -> Circuit:
        circuit = circuit_for(recipe, problem)
        network = circuit.get_submodule("layers.0.feedforward")
        network.get_buffer("outward")[:, problem.points.shape[1] :] = 0  # the units of -z
        return circuit

    problems = _problems(rng)
    example = Problem(np.zeros((1, 2)), np.array([[-3.0, 4.0]]), "worked by hand")
    return erratum(
        1, "[z]_+^2 with d hidden units loses negative coordinates; 2d units do not",
        [deviation_from(printed(p), algorithms.Lloyd(), p) for p in problems],
        [deviation_from(circuit_for(recipe, p), algorithms.Lloyd(), p) for p in problems],
        f"|(-3, 4)|^2 is {_norm_of_example(circuit_for(recipe, example)):g}, as printed "
        f"{_norm_of_example(printed(example)):g}",
    )  # fmt: skip


def _norm_of_example(circuit: Circuit) -> float:
    token = circuit.tokens.decoder(torch.tensor([[-3.0, 4.0]]))
    return circuit.space.read(
        circuit.get_submodule("layers.0.feedforward")(token), SQUARED_NORM
    ).item()


def e_03_codes_start(rng: np.random.Generator) -> Finding:
    """I^{d':} includes `HALF`: harmless for soft-max, not for linear attention."""
    soft, hard = recipes.soft_dot(5.0), recipes.lloyd_dot()
    along = on(HALF, ASSIGNMENT)

    def printed(recipe: Recipe) -> Recipe:
        return replace(recipe, decoder_cross=replace(recipe.decoder_cross, query=along, key=along))

    problems = _problems(rng)
    harmless = [
        deviation_from(circuit_for(printed(hard), p), algorithms.Lloyd(), p) for p in problems
    ]
    return erratum(
        3, "Q_3 = K_3 = I^{d':} should start at d'+1",
        [deviation_from(circuit_for(printed(soft), p), algorithms.Soft(5.0), p) for p in problems],
        [deviation_from(circuit_for(soft, p), algorithms.Soft(5.0), p) for p in problems],
        f"as printed with limiting soft-max off by {max(harmless):.1g} only",
    )  # fmt: skip


def e_04_spherical_sign(rng: np.random.Generator) -> Finding:
    """V_3 = V_4 adds the old centers again instead of cancelling them."""
    recipe = recipes.spherical()
    printed = replace(recipe, decoder_self=replace(recipe.decoder_self, value=on(POSITION)))
    problems = [on_sphere(rng, p) for p in _problems(rng)]
    return erratum(
        4, "the spherical proof states V_3 = V_4 and uses V_4 = -V_3",
        [deviation_from(circuit_for(printed, p), algorithms.Spherical(), p) for p in problems],
        [deviation_from(circuit_for(recipe, p), algorithms.Spherical(), p) for p in problems],
    )  # fmt: skip


def e_10_lifted_robust(rng: np.random.Generator) -> Finding:
    """V_5 = -I^{:d+1} keeps the -1/2, and the network adds another in every layer."""
    recipe = recipes.robust_lifted(0.5)
    kept = replace(recipe.decoder_self, value=-on(POSITION, SQUARED_NORM))
    printed = replace(recipe, decoder_self=kept)
    algorithm = algorithms.Robust(inverse_temperature=0.5, lifted=True)
    problems = _problems(rng)
    first = [deviation_from(circuit_for(printed, p), algorithm, p, n_layers=1) for p in problems]
    return erratum(
        10, "the lifted robust circuit fails from layer 2; wipe row d+2 as well",
        [deviation_from(circuit_for(printed, p), algorithm, p) for p in problems],
        [deviation_from(circuit_for(recipe, p), algorithm, p) for p in problems],
        f"layer 1 as printed off by {max(first):.1g}",
    )  # fmt: skip


def e_14_formulas(rng: np.random.Generator) -> Finding:
    """X sigma_lin(Y^T), not X sigma_lin(Y)^T; sigma_inf is not sigma_lin at 0; no negation."""
    printed, repaired, farthest = [], [], []
    for p in _problems(rng, 20):
        points, centers = torch.tensor(p.points), torch.tensor(p.centers)
        away = squared_distances(points, centers)
        shares = (-5 * away).softmax(dim=1).mT  # Y, (k, n)
        new = algorithms.run(algorithms.Soft(5.0), p.points, p.centers, 1).centers[-1]
        wrong, right = Linear()(shares.mT).mT @ points, Linear()(shares) @ points
        printed.append(float(np.abs(wrong.numpy() - new).max() / p.spread))
        repaired.append(float(np.abs(right.numpy() - new).max() / p.spread))
        farthest.append(_negated(points, centers) == away.argmax(dim=1).tolist())
    zero = torch.zeros(1, 4)
    return erratum(
        14, "linear attention in thm:l2-clus eu is X sigma_lin(Y^T)", printed, repaired,
        f"of the zero vector sigma_inf is {LimitingSoftmax()(zero)[0, 0]:g} each, sigma_lin "
        f"{Linear()(zero)[0, 0]:g}; def:perm-mat's negation selects the farthest center in "
        f"{sum(farthest)} of {len(farthest)} problems",
    )  # fmt: skip


def _negated(points: Tensor, centers: Tensor) -> list[int]:
    """Return the centers that points select with the negation of pi."""
    tokens = Tokens((POSITION, SQUARED_NORM, HALF))
    turned = (-lifting(POSITION)).matrix(tokens.space(points.shape[1], 1))
    queries = tokens.encoder(points, points.new_zeros(len(points), 1)) @ turned
    return (queries @ tokens.decoder(centers).mT).argmax(dim=1).tolist()


CONSTRUCTIONS: tuple[Statement, ...] = (
    e_01_rectified_square, e_03_codes_start, e_04_spherical_sign, e_10_lifted_robust, e_14_formulas,
)  # fmt: skip
