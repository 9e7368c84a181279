"""Equations of recipes in text and LaTeX, and figures for notebooks."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.app.explorer.embedded import EmbeddedPage
from lloydformer.circuits import recipes
from lloydformer.circuits.display import COLOURS, MOST_POINTS
from lloydformer.plots.palette import CLUSTERS

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
}


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


def parsed(html):
    return ElementTree.fromstring(f"<div>{html.replace('<br>', '<br/>')}</div>")


def run(n, d, k=3, **settings):
    points = torch.from_numpy(np.random.default_rng(0).normal(size=(n, d)))
    return lf.Circuit(lf.recipes.lloyd(), d, k)(points, points[:k], **settings)


@pytest.mark.parametrize("make", [lf.recipes.lloyd, lf.recipes.relocating, lf.recipes.symmetric])
def test_a_recipe_shows_its_row_and_its_equation(make):
    found = parsed(make()._repr_html_())
    assert [cell.text for cell in found.iter("td")] == [make().name, *make().row().values()]
    assert found.find("pre").text == make().equation()


def test_names_do_not_become_markup():
    odd = replace(lf.recipes.lloyd(), name="<script>alert(1)</script>")
    assert "<script>" not in odd._repr_html_()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_trace_shows_points_by_cluster_and_paths_of_centers(d):
    trace = run(40, d, n_layers=4)
    figure = parsed(trace._repr_html_())
    fills = [circle.get("fill") for circle in figure.iter("circle")]
    assert fills == [COLOURS[label] for label in trace.labels[-1].tolist()]
    paths = [line.get("points").split() for line in figure.iter("polyline")]
    assert [len(path) for path in paths] == [5, 5, 5]
    assert ("first two coordinates" in "".join(figure.itertext())) == (d > 2)
    places = [float(circle.get(side)) for circle in figure.iter("circle") for side in ("cx", "cy")]
    assert 0 <= min(places) <= max(places) <= 260


def test_of_many_points_some_are_shown_and_of_a_batch_the_words():
    figure = parsed(run(2500, 2, n_layers=1)._repr_html_())
    assert MOST_POINTS / 2 < len(list(figure.iter("circle"))) <= MOST_POINTS
    points = torch.rand(4, 10, 2)
    trace = lf.Circuit(lf.recipes.lloyd(), 2, 2)(points, points[:, :2], n_layers=1)
    assert parsed(trace._repr_html_()).find("pre").text == repr(trace)


def test_colours_are_those_of_all_plots():
    assert CLUSTERS[: len(COLOURS)] == COLOURS


def test_the_page_in_a_frame_begins_with_the_points():
    page = EmbeddedPage(lf.recipes.soft(2.0), np.array([[0.5, 1.0]]), np.array([[3.0, 4.0]]))
    frame = parsed(page._repr_html_()).find("iframe")
    assert '"points": [[0.5, 1.0]], "centers": [[3.0, 4.0]]' in frame.get("srcdoc")
    assert '"inverse_temperature": 2.0' in frame.get("srcdoc")
