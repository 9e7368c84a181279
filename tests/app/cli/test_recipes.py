"""`lloydformer recipes --diagram`: a file with the drawing, and clear refusals."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from lloydformer import plots
from lloydformer.app.cli import recipes as page
from lloydformer.app.cli import terminal
from lloydformer.circuits import recipes


def test_the_file_holds_the_diagram(command, tmp_path):
    path = tmp_path / "new" / "trimmed.svg"
    status, out, err = command("recipes", "trimmed", "--diagram", str(path))
    assert status == 0
    assert "Trimmed k-means" in out  # the row is printed as without it
    assert err == f"diagram: {path}\n"
    assert path.read_text(encoding="utf-8") == plots.diagram(recipes.trimmed())
    assert ElementTree.parse(path).getroot().get("role") == "img"


def test_json_stays_json(command, tmp_path):
    out = command("recipes", "relocating", "--diagram", str(tmp_path / "a.svg"), "--json")[1]
    assert list(json.loads(out)["rows"]) == ["relocating"]
    assert (tmp_path / "a.svg").exists()


def test_an_existing_file_is_replaced_only_with_force(command, tmp_path):
    path = tmp_path / "lloyd.svg"
    path.write_text("mine")
    arguments = ("recipes", "lloyd", "--diagram", str(path))
    status, out, err = command(*arguments)
    assert (status, out) == (2, "")
    assert "exists; pass --force to replace it, or --diagram for another" in err
    assert path.read_text() == "mine"
    assert command(*arguments, "--force")[0] == 0
    assert path.read_text(encoding="utf-8") == plots.diagram(recipes.lloyd())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "--diagram: found no recipe; name one"),
        (("fuzzy",), "recipe: found 'fuzzy'; pass one of lloyd"),
    ],
)
def test_a_recipe_must_be_named(command, tmp_path, arguments, complaint):
    status, out, err = command("recipes", *arguments, "--diagram", str(tmp_path / "a.svg"))
    assert (status, out) == (2, "")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


def test_only_svg_is_drawn(command, tmp_path):
    status, _, err = command("recipes", "lloyd", "--diagram", str(tmp_path / "lloyd.png"))
    assert status == 2
    assert "pass a name that ends in .svg" in err
    assert list(tmp_path.iterdir()) == []


def test_the_table_fits_80_columns(command, monkeypatch):
    small = terminal.Terminal(width=80, force_terminal=True, highlight=False, record=True)
    for module in (terminal, page):
        monkeypatch.setattr(module, "stdout", small)
    assert command("recipes")[0] == 0
    lines = small.export_text().splitlines()
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(f"{name} ") for line in lines) for name in recipes.MAKERS)
