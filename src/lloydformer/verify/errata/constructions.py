"""Items on the constructions: matrices as printed, and the size of the model."""

from dataclasses import replace

import numpy as np

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.projections import on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import ASSIGNMENT, HALF, POSITION
from lloydformer.verify.errata.runs import circuit_for, deviation_from
from lloydformer.verify.finding import Finding, Statement, erratum
from lloydformer.verify.problems import on_sphere, small_problems


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
        "no effect in the theorem; {count} fail, by up to {worst} of the spread, if the soft "
        "version copies it",
        f"in the theorem, with limiting soft-max, off by {max(harmless):.0e}",
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


def e_19_size(rng: np.random.Generator) -> Finding:
    """rem:trf-size counts diagonal operators: 12 (d + k) numbers; dense ones have 12 (d + k)^2."""
    sizes = [(int(d), int(k)) for d, k in rng.integers(1, 60, size=(30, 2))]
    counts = [_entries(d, k) for d, k in sizes]
    formulas = [(12 * (d + k) ** 2, 12 * (d + k), 6 * (d + k)) for d, k in sizes]
    n, d, k = 512, 32, 10  # the sizes of the trained model, fig:trf-train
    dense, diagonal, used = _entries(d, k)
    return erratum(
        19, "open", "rem:trf-size counts matrices as diagonal operators",
        [dense / diagonal - 1 for dense, diagonal, _ in counts],
        [abs(a / b - 1) for count, formula in zip(counts, formulas, strict=True)
         for a, b in zip(count, formula, strict=True)],
        f"d = 32, k = 10: {diagonal} numbers on the diagonals, {dense:,} in dense matrices",
        f"{used} of them are not zero; input at n = 512 {d * (n + k):,}, output {d * k}",
    )  # fmt: skip


def _entries(d: int, k: int) -> tuple[int, int, int]:
    """Return the numbers of entries of all matrices of lloyd(), diagonal entries, and not zero."""
    matrices = list(Circuit(recipes.lloyd(), d, k).buffers())
    return (
        sum(m.numel() for m in matrices),
        sum(len(m.diagonal()) for m in matrices),
        sum(int(m.count_nonzero()) for m in matrices),
    )


CONSTRUCTIONS: tuple[Statement, ...] = (e_03_codes_start, e_04_spherical_sign, e_19_size)
