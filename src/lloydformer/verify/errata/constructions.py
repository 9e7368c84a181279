"""Items on the constructions: networks and matrices as printed, and the size of the model."""

from dataclasses import replace

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.projections import on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION, SQUARED_NORM
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, on_sphere, small_problems


def e_01_rectified_square(rng: np.random.Generator) -> Finding:
    """d hidden units with [z]_+^2 lose negative coordinates; 2d units do not."""
    recipe = replace(recipes.lloyd_dot(), feedforward=Quadratic("rectified"))

    def printed(problem: Problem) -> Circuit:
        circuit = circuit_for(recipe, problem)
        network = circuit.get_submodule("layers.0.feedforward")
        network.get_buffer("outward")[:, problem.points.shape[1] :] = 0  # the units of -z
        return circuit

    problems = small_problems(rng)
    example = Problem(np.zeros((1, 2)), np.array([[-3.0, 4.0]]), "worked by hand")
    return erratum(
        1, "error", "[z]_+^2 with d hidden units loses negative coordinates; 2d units do not",
        [deviation_from(printed(p), algorithms.Lloyd(), p) for p in problems],
        [deviation_from(circuit_for(recipe, p), algorithms.Lloyd(), p) for p in problems],
        note=f"|(-3, 4)|^2 is {_norm_of_example(circuit_for(recipe, example)):g}, as printed "
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

    problems = small_problems(rng)
    harmless = [
        deviation_from(circuit_for(printed(hard), p), algorithms.Lloyd(), p) for p in problems
    ]
    return erratum(
        3, "notation", "Q_3 = K_3 = I^{d':} should start at d'+1",
        [deviation_from(circuit_for(printed(soft), p), algorithms.Soft(5.0), p) for p in problems],
        [deviation_from(circuit_for(soft, p), algorithms.Soft(5.0), p) for p in problems],
        "as printed {count} wrong with linear attention, by up to {worst} of the spread",
        f"with limiting soft-max, the theorem's, off by {max(harmless):.0e} only",
    )  # fmt: skip


def e_04_spherical_sign(rng: np.random.Generator) -> Finding:
    """V_3 = V_4 adds the old centers again instead of cancelling them."""
    recipe = recipes.spherical()
    printed = replace(recipe, decoder_self=replace(recipe.decoder_self, value=on(POSITION)))
    problems = [on_sphere(rng, p) for p in small_problems(rng)]
    return erratum(
        4, "notation", "the spherical proof states V_3 = V_4 and uses V_4 = -V_3",
        [deviation_from(circuit_for(printed, p), algorithms.Spherical(), p) for p in problems],
        [deviation_from(circuit_for(recipe, p), algorithms.Spherical(), p) for p in problems],
    )  # fmt: skip


def e_10_lifted_robust(rng: np.random.Generator) -> Finding:
    """V_5 = -I^{:d+1} keeps the -1/2, and the network adds another in every layer."""
    recipe = recipes.robust_lifted(0.5)
    kept = replace(recipe.decoder_self, value=-on(POSITION, SQUARED_NORM))
    printed = replace(recipe, decoder_self=kept)
    algorithm = algorithms.Robust(inverse_temperature=0.5, lifted=True)
    problems = small_problems(rng)
    first = [deviation_from(circuit_for(printed, p), algorithm, p, n_layers=1) for p in problems]
    bare = [deviation_from(without_bias(circuit_for(printed, p)), algorithm, p) for p in problems]
    return erratum(
        10, "error", "the lifted robust circuit needs V_5 = -I^{:d+2}, or a network without bias",
        [deviation_from(circuit_for(printed, p), algorithm, p) for p in problems],
        [deviation_from(circuit_for(recipe, p), algorithm, p) for p in problems],
        "as printed {count} wrong from layer 2, by up to {worst} of the spread",
        f"layer 1 as printed off by {max(first):.0e}; without bias off by {max(bare):.0e}",
    )  # fmt: skip


def without_bias(circuit: Circuit) -> Circuit:
    """Return the circuit with the bias of its network set to zero."""
    circuit.get_submodule("layers.0.feedforward").get_buffer("bias").zero_()
    return circuit


def e_19_size(rng: np.random.Generator) -> Finding:
    """rem:trf-size holds for the entries that are not zero; dense matrices have 12 (d + k)^2."""
    sizes = [(int(d), int(k)) for d, k in rng.integers(1, 60, size=(30, 2))]
    dense, nonzero = zip(*(_entries(d, k) for d, k in sizes), strict=True)
    least = [6 * (d + k) for d, k in sizes]
    n, d, k = 512, 32, 10  # the sizes of the trained model, fig:trf-train
    stored, used = _entries(d, k)
    return erratum(
        19, "open", "rem:trf-size counts the entries that are not zero",
        [stored / few - 1 for stored, few in zip(dense, least, strict=True)],
        [used / few - 1 for used, few in zip(nonzero, least, strict=True)],
        "dense matrices have more than 6 (d + k) numbers in {count} sizes",
        f"d 32, k 10: {used} entries that are not zero, {stored:,} in all; input at n 512 "
        f"{d * (n + k):,}, output {d * k}",
    )  # fmt: skip


def _entries(d: int, k: int) -> tuple[int, int]:
    """Return the number of entries of all matrices of lloyd(), and how many are not zero."""
    matrices = list(Circuit(recipes.lloyd(), d, k).buffers())
    return sum(m.numel() for m in matrices), sum(int(m.count_nonzero()) for m in matrices)


CONSTRUCTIONS: tuple[Statement, ...] = (
    e_01_rectified_square, e_03_codes_start, e_04_spherical_sign, e_10_lifted_robust, e_19_size,
)  # fmt: skip
