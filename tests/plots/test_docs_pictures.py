"""The pictures of README and docs are those that their scripts draw, and can be read."""

import runpy
from dataclasses import replace
from pathlib import Path

import matplotlib.image as mpimg
import numpy as np
import pytest
from svg_layout import collisions

import lloydformer as lf

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
FIGURES = runpy.run_path(str(FOLDER / "paper-figures.py"))
DRAWINGS = {
    **FIGURES["FIGURES"],
    "first-example": runpy.run_path(str(FOLDER / "first-example.py"))["draw"],
}
SCRIPT_OF = {"first-example": "first-example.py"}


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_file_is_what_the_script_draws(name):
    shown = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    script = SCRIPT_OF.get(name, "paper-figures.py")
    assert shown == DRAWINGS[name](), f"run: python {FOLDER / script}"


@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_in_the_way_of_anything(name):
    assert collisions(DRAWINGS[name]()) == []


def test_the_drawings_are_on_pages():
    pages = "".join(page.read_text(encoding="utf-8") for page in FOLDER.parent.glob("*.md"))
    assert [name for name in DRAWINGS if f"pictures/{name}.svg" not in pages] == []


def test_the_template_lists_every_recipe_of_the_table_in_every_attention():
    svg = DRAWINGS["fig-gen-arch"]()
    for slot, column in FIGURES["CELLS"].items():
        box = svg[svg.index(f'data-part="{slot}"') :].split("data-wires")[0]
        for recipe in lf.recipes.table():
            assert recipe.row()[column] in box
            assert recipe.name in box


def test_another_part_in_a_recipe_changes_the_drawings(monkeypatch):
    before = {name: draw() for name, draw in FIGURES["FIGURES"].items()}
    base, *others = lf.recipes.table()
    softer = replace(base, encoder_cross=lf.recipes.soft().encoder_cross)
    monkeypatch.setattr(lf.recipes, "lloyd", lambda: softer)
    monkeypatch.setattr(lf.recipes, "table", lambda: (softer, *others))
    after = {name: draw() for name, draw in FIGURES["FIGURES"].items()}
    assert all(before[name] != after[name] for name in before)


def test_the_still_picture_of_the_readme_is_what_its_script_draws(tmp_path: Path) -> None:
    """One pixel in ten thousand may differ, where a line is rounded to the next pixel."""
    script = FOLDER / "demo.py"
    picture = script.with_suffix(".png")
    runpy.run_path(str(script))["draw"](tmp_path / "demo.png")
    drawn, shown = mpimg.imread(tmp_path / "demo.png"), mpimg.imread(picture)
    assert drawn.shape == shown.shape
    other = np.abs(drawn - shown).max(axis=2) > 0.1
    assert other.mean() < 1e-4, f"run: python {script}"
    assert picture.stat().st_size < 250_000
