"""Recipes and traces in notebooks: well-formed, complete, and no text becomes markup."""

from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.notebook import COLOURS, MOST_POINTS
from lloydformer.explorer.embedded import EmbeddedPage
from lloydformer.plots.palette import CLUSTERS


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
