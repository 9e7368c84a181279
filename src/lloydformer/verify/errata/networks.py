"""Items on the network that updates squared norms: its activation, its weights and its bias."""

from dataclasses import replace

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.projections import on
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION, SQUARED_NORM
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import Problem, small_problems

RECTIFIED = replace(recipes.lloyd_dot(), feedforward=Quadratic("rectified"))
"""Lloyd's algorithm with dot products and 2d rectified squares."""


def e_01_rectified_square(rng: np.random.Generator) -> Finding:
    """The appendix's weights need the plain square; d rectified units need a shift."""
    problems, lloyd = small_problems(rng), algorithms.Lloyd()
    mixed = [deviation_from(_with_d_units(p), lloyd, p) for p in problems]
    shifted = [max(deviation_from(with_shift(p), lloyd, p), _lifting(with_shift(p), p))
               for p in problems]  # fmt: skip
    double = [deviation_from(circuit_for(RECTIFIED, p), lloyd, p) for p in problems]
    bare = [max(deviation_from(_without_bias_or_reset(p), lloyd, p),
                _lifting(_without_bias_or_reset(p), p)) for p in problems]  # fmt: skip
    example = Problem(np.zeros((1, 2)), np.array([[-3.0, 4.0]]), "worked by hand")
    return erratum(
        1, "notation", "the appendix's weights are for z^2, and the main text has [z]_+^2",
        mixed, shifted + double + bare,
        "the paper's text ([z]_+^2 with these weights) fails {count}, by up to {worst} of the "
        f"spread; our repairs fail {_wrong(shifted)} (d units, a shift) and {_wrong(double)} "
        "(2d units)",
        f"|(-3, 4)|^2 is {_norm_of_example(circuit_for(RECTIFIED, example)):g}, with d rectified "
        f"units and no shift {_norm_of_example(_with_d_units(example)):g}",
    )  # fmt: skip


def _wrong(deviations: list[float]) -> str:
    return f"{sum(not d <= 1e-6 for d in deviations)} of {len(deviations)}"


def _with_d_units(problem: Problem) -> Circuit:
    """Return the circuit with the appendix's weights and the main text's activation."""
    circuit = circuit_for(RECTIFIED, problem)
    network = circuit.get_submodule("layers.0.feedforward")
    network.get_buffer("outward")[:, problem.points.shape[1] :] = 0  # the units of -z
    return circuit


def with_shift(problem: Problem) -> Circuit:
    """Return a circuit with d rectified units and no bias, right for these points.

    The units compute [c + b]_+^2 with b so large that c + b is never negative: the range of the
    points is enough, because the circuit subtracts their middle. A decoder token's codes sum to 1,
    so b in their columns of W_1 is a bias. V_3 writes -2b sum(c) - d b^2 into the squared norm,
    which the sum of the units completes to |c|^2, and keeps -1/2.
    """
    circuit, shift = circuit_for(RECTIFIED, problem), float(np.ptp(problem.points))
    d, space = problem.points.shape[1], circuit.space
    network = circuit.get_submodule("layers.0.feedforward")
    network.get_buffer("outward")[:, d:] = 0
    network.get_buffer("inward")[:d, space.span(ASSIGNMENT)] = shift
    network.get_buffer("bias").zero_()
    value = circuit.get_submodule("layers.0.decoder_cross").get_buffer("value")
    value[space.span(SQUARED_NORM), space.span(POSITION)] = -2 * shift
    value[space.span(SQUARED_NORM), space.span(HALF)] = 2 * d * shift**2
    value[space.span(HALF), space.span(HALF)] = 1
    return circuit


def _without_bias_or_reset(problem: Problem) -> Circuit:
    """Return the circuit with squares and V_4 = -I^{:d+1}, which keeps -1/2 without a bias."""
    recipe = recipes.lloyd_dot()
    kept = replace(recipe.decoder_self, value=-on(POSITION, SQUARED_NORM))
    return without_bias(circuit_for(replace(recipe, decoder_self=kept), problem))


def _lifting(circuit: Circuit, problem: Problem) -> float:
    """Return how far a moved center's rows d+1 and d+2 are from |c|^2 and -1/2, in spreads."""
    points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
    token = circuit(points, centers, 1, keep="layers.0.decoder_next")["layers.0.decoder_next"]
    position, norm, half = (circuit.space.read(token, s) for s in (POSITION, SQUARED_NORM, HALF))
    away = (norm - position.square().sum(dim=-1, keepdim=True)).abs().max()
    return max(float(away) / problem.spread**2, float((half + 0.5).abs().max()))


def _norm_of_example(circuit: Circuit) -> float:
    token = circuit.tokens.decoder(torch.tensor([[-3.0, 4.0]]))
    return circuit.space.read(
        circuit.get_submodule("layers.0.feedforward")(token), SQUARED_NORM
    ).item()


def e_10_lifted_robust(rng: np.random.Generator) -> Finding:
    """V_5 = -I^{:d+1} keeps the -1/2; a network with a bias adds another in every layer."""
    recipe = recipes.robust_lifted(0.5)
    kept = replace(recipe.decoder_self, value=-on(POSITION, SQUARED_NORM))
    printed = replace(recipe, decoder_self=kept)
    algorithm = algorithms.Robust(inverse_temperature=0.5, lifted=True)
    problems = small_problems(rng, 30)
    first = [deviation_from(circuit_for(printed, p), algorithm, p, n_layers=1) for p in problems]
    bare = [deviation_from(without_bias(circuit_for(printed, p)), algorithm, p) for p in problems]
    return erratum(
        10, "open", "whether the network of the lifted robust circuit has a bias",
        [deviation_from(circuit_for(printed, p), algorithm, p) for p in problems],
        bare + [deviation_from(circuit_for(recipe, p), algorithm, p) for p in problems],
        f"without it {_wrong(bare)} wrong; with it {{count}} from layer 2, by up to {{worst}} of "
        "the spread",
        f"with it layer 1 is off by {max(first):.0e}; without it all are off by {max(bare):.0e}",
    )  # fmt: skip


def without_bias(circuit: Circuit) -> Circuit:
    """Return the circuit with the bias of its network set to zero."""
    circuit.get_submodule("layers.0.feedforward").get_buffer("bias").zero_()
    return circuit


NETWORKS: tuple[Statement, ...] = (e_01_rectified_square, e_10_lifted_robust)
