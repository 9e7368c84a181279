"""The page in real Chromium: what it shows is what Python computes."""

import contextlib
import io

import numpy as np
import pytest
import torch

import lloydformer as lf

RECIPES = (
    "lloyd",
    "lloyd_dot",
    "spherical",
    "soft",
    "trimmed",
    "robust",
    "medoids",
    "soft_dot",
    "robust_lifted",
    "lloyd_binary",
)
N_LAYERS = 10


def tensor(rows):
    return torch.tensor(rows, dtype=torch.float64)


def trace_of(recipe, points, centers, n_layers=N_LAYERS, patches=()):
    circuit = lf.Circuit(recipe, n_features=len(points[0]), n_clusters=len(centers))
    with contextlib.ExitStack() as stack:
        for name, change in patches:
            stack.enter_context(circuit.patch(name, change))
        return circuit(tensor(points), tensor(centers), n_layers=n_layers, seed=0)


def test_points_are_added_and_every_recipe_equals_python(explore):
    page = explore()
    page.choose("Points", "outliers")
    for place in ((60, 80), (200, 120)):
        page.page.click("#sandbox .plot", position={"x": place[0], "y": place[1]})
    points = page.state()["points"]
    before = page.dataset("outliers")
    assert points[: len(before["points"])] == before["points"]
    assert len(points) == len(before["points"]) + 2
    for name in RECIPES:
        page.choose("Algorithm", name)
        x, c = tensor(points), tensor(before["centers"])
        if name == "spherical":
            x, c = torch.nn.functional.normalize(x), torch.nn.functional.normalize(c)
        expected = trace_of(getattr(lf.recipes, name)(), x.tolist(), c.tolist())
        shown = page.all_centers(N_LAYERS)
        np.testing.assert_allclose(shown, expected.centers, rtol=0, atol=1e-9, err_msg=name)
        assert page.number(".objective-value") == pytest.approx(float(expected.objective[-1]))
        assert page.number(".deviation") < 1e-8, name


def test_gamma_changes_the_numbers_as_in_python(explore):
    page = explore("#recipe=soft&data=three")
    page.page.fill('[aria-label^="Inverse temperature"]', "70")
    recipe = page.recipe()
    assert recipe.encoder_cross.activation.inverse_temperature not in (0, 1)
    sets = page.dataset("three")
    expected = trace_of(recipe, sets["points"], sets["centers"])
    np.testing.assert_allclose(page.all_centers(N_LAYERS), expected.centers, rtol=0, atol=1e-9)


def test_a_head_that_is_switched_off(explore):
    page = explore("#recipe=lloyd&data=three&layer=0")
    page.step()
    assert all(page.lines().values())
    page.page.click('[data-head="decoder_self"]')
    page.page.click('[data-break="off"]')
    broken = [line for line, holds in page.lines().items() if not holds]
    assert "Each center forgets its old place." in broken
    assert "Assign each point to its nearest center." not in broken
    sets = page.dataset("three")
    patch = ("layers.*.decoder_self.output", torch.zeros_like)
    expected = trace_of(lf.recipes.lloyd(), sets["points"], sets["centers"], patches=[patch])
    page.step(4)
    np.testing.assert_allclose(page.centers(), expected.centers[5], rtol=0, atol=1e-9)
    page.page.click('button:has-text("repair")')
    assert all(page.lines().values())


@pytest.mark.long
def test_code_that_is_copied_runs_and_gives_the_same_objective(explore):
    page = explore("#recipe=trimmed&data=outliers&layer=0")
    page.page.click('[data-head="encoder_self"]')
    page.page.click('[data-break="off"]')
    page.page.click("text=Copy as Python")
    page.page.wait_for_function("document.querySelector('.copied').value !== ''")
    code = page.page.input_value(".copied")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(code, {})
    objective = [float(x) for x in said.getvalue().strip("[]\n").split(",")]
    shown = [page.number(".objective-value")]
    for _ in range(N_LAYERS):
        page.step()
        shown.append(page.number(".objective-value"))
    assert shown == pytest.approx(objective, abs=1e-9)


def test_a_part_is_swapped_and_the_page_says_what_it_is(explore):
    page = explore("#recipe=lloyd&data=three&layer=0")
    verdict = page.page.locator(".verdict")
    assert "Lloyd's algorithm" in verdict.text_content()
    menu = '[aria-label="Encoder cross-attention: swap a part"]'
    page.page.select_option(menu, label="Soft-max")
    assert verdict.text_content().startswith("New.")
    page.page.select_option('[aria-label="Decoder cross-attention: swap a part"]', label="Linear")
    assert "Soft k-means" in verdict.text_content()
    assert page.recipe().heads == lf.recipes.soft().heads
    page.page.click("text=Undo changes")
    assert "Lloyd's algorithm" in verdict.text_content()


def test_a_part_that_does_not_fit_is_refused_in_pythons_words(explore):
    page = explore("#recipe=trimmed&data=three&layer=0")
    verdict = page.page.locator(".verdict")
    page.page.select_option('[aria-label="Decoder cross-attention: swap a part"]', label="Linear")
    with pytest.raises(ValueError) as refused:
        page.recipe()
    assert verdict.text_content() == f"Refused. {refused.value}"
    page.page.click("text=Undo changes")
    assert "rimmed" in verdict.text_content()


@pytest.mark.long
def test_the_address_brings_everything_back(explore):
    page = explore("#recipe=trimmed&data=outliers&layer=0")
    page.page.click('[data-head="decoder_cross"]')
    page.page.fill('[aria-label^="Fraction kept"]', "150")
    page.page.click('[data-break="freeze"]')
    page.page.click("#sandbox .plot", position={"x": 50, "y": 60})
    page.step(3)
    page.state()
    again = explore(page.page.url.partition("index.html")[2])
    assert again.centers() == page.centers()
    assert again.page.locator(".broken-list").text_content() == (
        page.page.locator(".broken-list").text_content()
    )
    assert again.page.get_attribute('[data-head="decoder_cross"]', "aria-pressed") == "true"


def test_looking_at_a_point_marks_it_in_every_matrix(explore):
    page = explore("#recipe=lloyd&data=three&layer=2")
    page.page.hover('#sandbox [data-point="20"]')
    marked = page.page.eval_on_selector_all(
        ".head-panel .heatmap",
        "maps => maps.map(m => [m.dataset.map, m.querySelectorAll('i.row').length])",
    )
    assert {name for name, rows in marked if rows == 1} == {
        "queries",
        "scores",
        "attention",
        "output",
    }
    thumbs = page.page.eval_on_selector_all(
        ".layer .thumb-marks", "all => all.map(g => g.children.length)"
    )
    assert thumbs == [1, 2, 1, 0]  # its row; row and column; its column; centers only
    page.page.hover('#sandbox [data-center="1"]')
    columns = page.page.locator('[data-map="attention"] i.column').count()
    assert columns == 1
    assert page.page.locator("#sandbox .rays line").count() > 5
