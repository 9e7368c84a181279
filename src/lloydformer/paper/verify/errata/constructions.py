"""Items on the constructions: matrices, networks and formulas as the text prints them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax, Linear
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.projections import lifting, on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION, SQUARED_NORM
from lloydformer.circuits.tokens import Tokens
from lloydformer.numerics.clusters import squared_distances
from lloydformer.paper.verify.compare import circuit_for, deviation_from, deviations_from
from lloydformer.paper.verify.finding import PrintedAndRepaired, count_wrong, erratum
from lloydformer.paper.verify.problems import Problem, draw, on_sphere, small_problems

# Lloyd's algorithm with dot products and 2d rectified squares.
RECTIFIED = replace(recipes.lloyd_dot(), feedforward=Quadratic("rectified"))


@erratum(1, "notation", "the appendix's weights are for z^2, and the main text has [z]_+^2")
def e_01_rectified_square(rng: np.random.Generator) -> PrintedAndRepaired:
    """The appendix's weights need the plain square; d rectified units need a shift."""
    problems, lloyd = small_problems(rng), algorithms.Lloyd()

    def deviations(make: Callable[[Problem], Circuit]) -> list[float]:
        return [
            max(deviation_from(make(p), lloyd, p), _lifting_error(make(p), p)) for p in problems
        ]

    # V_4 = -I^{:d+1} keeps -1/2, so that squares need no bias
    bare = deviations(lambda p: _without_bias(circuit_for(_keeping_half(recipes.lloyd_dot()), p)))
    shifted = deviations(with_shift)
    double = deviations_from(RECTIFIED, lloyd, problems)
    example = Problem(np.zeros((1, 2)), np.array([[-3.0, 4.0]]), "worked by hand")
    return PrintedAndRepaired(
        [deviation_from(_with_d_units(p), lloyd, p) for p in problems],
        shifted + double + bare,
        "mixing the two versions, [z]_+^2 with the appendix's weights, fails {count}, by up to "
        "{worst} of the spread; weights for [z]_+^2 fail "
        f"{count_wrong(shifted)} (d units, a shift) and {count_wrong(double)} (2d units)",
        f"|(-3, 4)|^2 is {_norm_of_example(circuit_for(RECTIFIED, example)):g}, with d rectified "
        f"units and no shift {_norm_of_example(_with_d_units(example)):g}",
    )


def _with_d_units(problem: Problem) -> Circuit:
    """Return the circuit with the appendix's weights and the main text's activation."""
    circuit = circuit_for(RECTIFIED, problem)
    network = circuit.get_submodule("layers.0.feedforward")
    # the units of z remain; those of -z would see the negative coordinates
    network.get_buffer("outward")[:, problem.points.shape[1] :] = 0
    return circuit


def with_shift(problem: Problem) -> Circuit:
    """Return a circuit with d rectified units and no bias, right for these points.

    The units compute [c + b]_+^2 with b so large that c + b is never negative: the range of the
    points is enough, because the circuit subtracts their middle. A decoder token's codes sum to 1,
    so b in their columns of W_1 is a bias. V_3 writes -2b sum(c) - d b^2 into the squared norm,
    which the sum of the units completes to |c|^2, and keeps -1/2.
    """
    circuit, shift = _with_d_units(problem), float(np.ptp(problem.points))
    d, space = problem.points.shape[1], circuit.space
    network = circuit.get_submodule("layers.0.feedforward")
    network.get_buffer("inward")[:d, space.span(ASSIGNMENT)] = shift
    network.get_buffer("bias").zero_()
    value = circuit.get_submodule("layers.0.decoder_cross").get_buffer("value")
    value[space.span(SQUARED_NORM), space.span(POSITION)] = -2 * shift
    value[space.span(SQUARED_NORM), space.span(HALF)] = 2 * d * shift**2
    value[space.span(HALF), space.span(HALF)] = 1
    return circuit


def _keeping_half(recipe: Recipe) -> Recipe:
    """Return the recipe with a decoder's self-attention that does not take off -1/2."""
    kept = replace(recipe.decoder_self, value=-on(POSITION, SQUARED_NORM))
    return replace(recipe, decoder_self=kept)


def _without_bias(circuit: Circuit) -> Circuit:
    """Set the bias of the circuit's network to zero; return the circuit."""
    circuit.get_submodule("layers.0.feedforward").get_buffer("bias").zero_()
    return circuit


def _lifting_error(circuit: Circuit, problem: Problem) -> float:
    """Return how far a moved center's rows d+1 and d+2 are from |c|^2 and -1/2, in spreads."""
    name = "layers.0.decoder_next"
    token = circuit(*problem.tensors(), 1, names_filter=name)[name]
    position, norm, half = (circuit.space.read(token, s) for s in (POSITION, SQUARED_NORM, HALF))
    away = (norm - position.square().sum(dim=-1, keepdim=True)).abs().max()
    return max(float(away) / problem.spread**2, float((half + 0.5).abs().max()))


def _norm_of_example(circuit: Circuit) -> float:
    """Return the squared norm that the circuit's network computes for (-3, 4)."""
    token = circuit.tokens.decoder(torch.tensor([[-3.0, 4.0]]))
    network = circuit.get_submodule("layers.0.feedforward")
    return circuit.space.read(network(token), SQUARED_NORM).item()


@erratum(3, "notation", "Q_3 = K_3 = I^{d':} should start at d'+1")
def e_03_codes_start(rng: np.random.Generator) -> PrintedAndRepaired:
    """I^{d':} includes `HALF`: harmless for soft-max, not for linear attention."""
    # linear attention divides by the sum of scores, to which HALF adds 1/4 for every point
    soft, hard = recipes.soft_dot(5.0), recipes.lloyd_dot()
    along = on(HALF, ASSIGNMENT)

    def print_codes(recipe: Recipe) -> Recipe:
        return replace(recipe, decoder_cross=replace(recipe.decoder_cross, query=along, key=along))

    problems = small_problems(rng)
    harmless = deviations_from(print_codes(hard), algorithms.Lloyd(), problems)
    return PrintedAndRepaired(
        deviations_from(print_codes(soft), algorithms.Soft(5.0), problems),
        deviations_from(soft, algorithms.Soft(5.0), problems),
        "no effect in the theorem; off by up to {worst} of the spread if the soft version copies "
        "it",
        f"in the theorem, with limiting soft-max, off by {max(harmless):.0e}",
    )


@erratum(4, "notation", "the spherical proof states V_3 = V_4 and uses V_4 = -V_3")
def e_04_spherical_sign(rng: np.random.Generator) -> PrintedAndRepaired:
    """V_3 = V_4 adds the old centers again instead of cancelling them."""
    recipe = recipes.spherical()
    printed = replace(recipe, decoder_self=replace(recipe.decoder_self, value=on(POSITION)))
    problems = [on_sphere(rng, p) for p in small_problems(rng)]
    return PrintedAndRepaired(
        deviations_from(printed, algorithms.Spherical(), problems),
        deviations_from(recipe, algorithms.Spherical(), problems),
        "as stated the old centers are added once more; as used they are taken off, and it is "
        "right",
    )


@erratum(10, "open", "whether the network of the lifted robust circuit has a bias")
def e_10_lifted_robust(rng: np.random.Generator) -> PrintedAndRepaired:
    """V_5 = -I^{:d+1} keeps the -1/2; a network with a bias adds another in every layer."""
    recipe = recipes.robust_lifted(0.5)
    printed = _keeping_half(recipe)
    algorithm = algorithms.Robust(inverse_temperature=0.5, lifted=True)
    problems = small_problems(rng, 30)
    # layer 1 reads the -1/2 of the embedding; only from layer 2 on there are two of them
    first = deviations_from(printed, algorithm, problems, n_layers=1)
    bare = [deviation_from(_without_bias(circuit_for(printed, p)), algorithm, p) for p in problems]
    return PrintedAndRepaired(
        deviations_from(printed, algorithm, problems),
        bare + deviations_from(recipe, algorithm, problems),
        f"without it {count_wrong(bare)} wrong; with it {{count}} from layer 2, by up to "
        "{worst} of the spread",
        f"with it layer 1 is off by {max(first):.0e}; without it all are off by {max(bare):.0e}",
    )


@erratum(14, "notation", "linear attention in thm:l2-clus eu is X sigma_lin(Y^T)")
def e_14_formulas(rng: np.random.Generator) -> PrintedAndRepaired:
    """X sigma_lin(Y^T), not X sigma_lin(Y)^T; sigma_inf is not sigma_lin at 0; no negation."""
    printed, repaired, farthest = [], [], []
    for p in small_problems(rng, 20):
        points, centers = p.tensors()
        away = squared_distances(points, centers)
        shares = (-5 * away).softmax(dim=1).mT  # Y, (k, n)
        new = algorithms.run(algorithms.Soft(5.0), p.points, p.centers, 1).centers[-1]
        wrong, right = Linear()(shares.mT).mT @ points, Linear()(shares) @ points
        printed.append(float(np.abs(wrong.numpy() - new).max() / p.spread))
        repaired.append(float(np.abs(right.numpy() - new).max() / p.spread))
        tokens = Tokens((POSITION, SQUARED_NORM, HALF))
        negated = (-lifting(POSITION)).matrix(tokens.space(points.shape[1], 1))
        queries = tokens.encoder(points, points.new_zeros(len(points), 1)) @ negated
        selected = (queries @ tokens.decoder(centers).mT).argmax(dim=1)
        farthest.append(bool((selected == away.argmax(dim=1)).all()))
    zero = torch.zeros(1, 4)
    return PrintedAndRepaired(
        printed,
        repaired,
        "the transpose belongs inside: as printed centers are weighted sums and not means; the "
        "proof's form is right",
        f"of the zero vector sigma_inf is {LimitingSoftmax()(zero)[0, 0]:g} each, sigma_lin "
        f"{Linear()(zero)[0, 0]:g}; a negation of pi selects the farthest center in "
        f"{sum(farthest)} of {len(farthest)} problems",
    )


@erratum(19, "open", "rem:trf-size counts matrices as diagonal operators")
def e_19_size(rng: np.random.Generator) -> PrintedAndRepaired:
    """rem:trf-size counts diagonal operators: 12 (d + k) numbers; dense ones have 12 (d + k)^2."""
    ratios, off = [], []
    for d, k in rng.integers(1, 60, size=(30, 2)).tolist():
        counts = _count_entries(d, k)
        formulas = (12 * (d + k) ** 2, 12 * (d + k), 6 * (d + k))
        ratios.append(counts[0] / counts[1] - 1)
        off += [abs(a / b - 1) for a, b in zip(counts, formulas, strict=True)]
    n, d, k = 512, 32, 10  # the sizes of the trained model, fig:trf-train
    dense, diagonal, nonzero = _count_entries(d, k)
    return PrintedAndRepaired(
        ratios,
        off,
        f"d = 32, k = 10: {diagonal} numbers on the diagonals, {dense:,} in dense matrices",
        f"{nonzero} of them are not zero; input at n = 512 {d * (n + k):,}, output {d * k}",
    )


def _count_entries(d: int, k: int) -> tuple[int, int, int]:
    """Return the numbers of entries of all matrices of lloyd(), diagonal entries, and not zero."""
    matrices = list(Circuit(recipes.lloyd(), d, k).buffers())
    return (
        sum(m.numel() for m in matrices),
        sum(len(m.diagonal()) for m in matrices),
        sum(int(m.count_nonzero()) for m in matrices),
    )


@erratum(20, "notation", "lem block lloyd writes Y(C, A) for Y(C, X)")
def e_20_slips(rng: np.random.Generator) -> PrintedAndRepaired:
    """Y(C, A) for Y(C, X) needs d = k, and is then wrong; another slip has no effect."""
    # Y(C, A) compares columns of A, which have k entries, with centers, which have d
    square = [
        draw(rng, "uniform", n=(20, 120), d=(s, s), k=(s, s))
        for s in rng.integers(2, 7, size=20).tolist()
    ]
    recipe = recipes.lloyd_dot()
    heads = {slot: getattr(recipe, slot) for slot in ("encoder_cross", "encoder_self")}
    swapped = {slot: replace(h, query=h.key, key=h.query) for slot, h in heads.items()}
    harmless = deviations_from(
        replace(recipe, **swapped), algorithms.Lloyd(), small_problems(rng, 20)
    )
    return PrintedAndRepaired(
        [_next_centers_error(p, by_scores=True) for p in square],
        [_next_centers_error(p, by_scores=False) for p in square],
        "as printed it is undefined unless d = k, and then another assignment",
        f"with Q and K swapped the centers are off by {max(harmless):.0e}",
    )


def _next_centers_error(problem: Problem, by_scores: bool) -> float:
    """Return how far X sigma(Y(C, .)^T) is from Lloyd's next centers, in spreads."""
    points, centers = problem.tensors()
    limit = LimitingSoftmax()
    # A or X, (n, k) or (n, d)
    columns = -squared_distances(points, centers) if by_scores else points
    shares = limit(-squared_distances(columns, centers))
    moved = limit(shares.mT) @ points
    lloyd = algorithms.run(algorithms.Lloyd("average"), problem.points, problem.centers, 1)
    return float(np.abs(moved.numpy() - lloyd.centers[-1]).max()) / problem.spread
