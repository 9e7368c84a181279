"""Equations, in plain text and in LaTeX."""

import pytest

from lloydformer.circuits import recipes

LLOYD = """\
X ← X + A₂[∞](X, C; I[x], I[x], I[y]) + A₂[∞](X, X; I[x], I[x], −I[y])
C ← C + A⟨⟩[∞](C, X; I[y], I[y], I[x]) + A⟨⟩[∞](C, C; I[y], I[y], −I[x])"""


def test_equation_of_lloyd_is_the_papers():
    """eq:l2-trf-updates with eq:trf-param-vals."""
    assert recipes.lloyd().equation() == LLOYD


def test_equation_of_soft_differs_in_two_activations():
    ours, base = recipes.soft(2.5).equation(), LLOYD
    base = base.replace("A₂[∞](X, C", "A₂[2.5](X, C").replace("A⟨⟩[∞](C, X", "A⟨⟩[lin](C, X")
    assert ours == base


PARTS = {
    "trimmed": (recipes.trimmed(0.9), ["NM 0.9", "I[x] + √δ I[y]"], [r"\sqrt{\delta} I_{y}"]),
    "robust": (recipes.robust(0.5), ["sparsemax 0.5"], [r"\mathrm{sparsemax}"]),
    "medoids": (recipes.medoids(), ["GSM 0"], [r"\mathrm{GSM}"]),
    "lloyd_dot": (recipes.lloyd_dot(), ["π, I[x q h]", "C ← C + N(C)"], [r"\pi, I_{x q h}"]),
    "rms": (recipes.spherical(), ["C ← RMS(C)"], [r"RMS(\tilde C)"]),
    "layer": (recipes.spherical("layer"), ["C ← LN(C)"], [r"LN(\tilde C)"]),
    "lifted": (recipes.robust_lifted(), ["A⟨⟩[I](X, C; π + 2 δ I[y ŷ]"], [r"\hat y", r"2 \delta"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_the_equation_names_the_parts(name):
    recipe, plain, latex = PARTS[name]
    assert [part for part in plain if part not in recipe.equation()] == []
    assert [part for part in latex if part not in recipe.equation(latex=True)] == []


def test_latex_is_ascii_with_balanced_braces(recipe):
    latex = recipe.equation(latex=True)
    assert latex.isascii()
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\gets") == latex.count("\\\\\n") + 1 == len(recipe.equation().split("\n"))


def test_a_recipe_prints_its_row_and_its_equation(recipe):
    head, equation = str(recipe).split("\n", 1)
    cells = [cell for cell in recipe.row().values() if cell]  # not every recipe has an appendix
    assert head == f"{recipe.name}: {' | '.join(cells)}"
    assert equation == recipe.equation()
