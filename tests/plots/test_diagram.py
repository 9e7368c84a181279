"""Diagrams of recipes: everything on them comes from the recipe, and can be read."""

import copy
import inspect
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from svg_layout import SVG, collisions, words

from lloydformer import Recipe, plots
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Identity, Sparsemax
from lloydformer.circuits.display import SIDES
from lloydformer.circuits.norms import LayerNorm
from lloydformer.circuits.projections import on
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled
from lloydformer.circuits.stages import Staged
from lloydformer.circuits.subspaces import ONE, Subspace
from lloydformer.circuits.symmetric import Fixed
from lloydformer.circuits.tokens import Binary
from lloydformer.plots.diagrams.svg import text_width

MAKERS = (*recipes.IN_TABLE, *recipes.BEYOND_TABLE, *recipes.TRAINED)
ALL = [make() for make in MAKERS]
LAYERS = [recipe for recipe in ALL if isinstance(recipe, Recipe)]
# Recipes with several heads in a slot, and with other parts than the defaults.
VARIED = [
    recipes.symmetric(Fixed((1.0, 2.0), (1.0, 1.0), (0.5, 0.5), apart=(0.1,))),
    recipes.robust(0.1, activation=recipes.robust_kmeans.TopK(10)),
    recipes.spherical("layer"),
    recipes.learned(codes=None, bias=False, scaled=False, dropout=0.0),
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def name_of(recipe: Any) -> str:
    return recipe.name


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def drawn_parts(svg: str) -> dict[str, list[str]]:
    """The words of each part, by its name; inner parts by their own names only."""
    found: dict[str, list[str]] = {}

    def walk(node: ElementTree.Element, part: str) -> None:
        part = node.get("data-part") or part
        if node.tag == f"{SVG}text":
            found.setdefault(part, []).append(node.text or "")
        for child in node:
            walk(child, part)

    walk(parsed(svg), "")
    return found


def visible(svg: str) -> str:
    """The picture without its description, which holds the equation."""
    return re.sub(r"<desc>.*?</desc>", "", svg, flags=re.DOTALL)


@pytest.mark.parametrize("recipe", [*ALL, *VARIED], ids=name_of)
def test_nothing_is_in_the_way_of_anything(recipe):
    assert collisions(plots.diagram(recipe)) == []


@pytest.mark.parametrize("recipe", ALL, ids=name_of)
def test_a_reader_without_eyes_gets_title_and_equation(recipe):
    root = parsed(plots.diagram(recipe))
    assert root.get("role") == "img"
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert recipe.name in root[0].text
    assert root[1].text == recipe.equation()
    assert not list(root.iterfind(".//*[@id]"))  # several diagrams can stand on one page


@pytest.mark.parametrize("recipe", LAYERS, ids=name_of)
def test_every_part_of_the_recipe_is_there_and_no_other(recipe):
    parts = set(drawn_parts(plots.diagram(recipe)))
    extras = {"norm": recipe.norm, "feedforward": recipe.feedforward, "numbers": recipe.numbers}
    expected = set(recipe.heads) | {name for name, part in extras.items() if part}
    tokens = {"encoder_tokens", "encoder_next", "decoder_tokens", "decoder_next"}
    assert parts == expected | tokens | {""}


@pytest.mark.parametrize("recipe", [r for r in ALL if isinstance(r, Staged)], ids=name_of)
def test_every_stage_and_every_attention_is_there(recipe):
    root = parsed(plots.diagram(recipe))
    assert [n.get("data-stage") for n in root.iterfind(".//*[@data-stage]")] == list(recipe.stages)
    assert set(recipe.heads) < set(drawn_parts(plots.diagram(recipe)))


@pytest.mark.parametrize("recipe", LAYERS, ids=name_of)
def test_wires_come_from_the_stream_of_queries_and_from_that_of_keys(recipe):
    root, sides = parsed(plots.diagram(recipe)), {"X": "encoder", "C": "decoder"}
    for slot in recipe.slots:
        (group,) = root.iterfind(f".//*[@data-wires='{slot}']")
        paths = [node.get("class").split()[-1] for node in group.iter(f"{SVG}path")]
        queries, keys = (sides[symbol] for symbol in SIDES[slot])
        assert paths == [queries, keys, queries]  # the last one is the output
        assert [node.text for node in group.iter(f"{SVG}text")] == ["query", "key, value"]


# ------------------------------------------------- swapping a part changes the picture there


@dataclass(frozen=True)
class Cosine:
    """A score of a user's own."""

    sharp: float = 2.0
    symbol = "cos"

    def __call__(self, queries, keys):
        return queries @ keys.mT


SWAPS: dict[str, Callable[[Any], Any]] = {
    "score": lambda old: DotProduct() if isinstance(old, Euclidean) else Euclidean(),
    "activation": lambda old: Identity() if isinstance(old, Sparsemax) else Sparsemax(0.3),
    "query": lambda old: on(ONE),
    "key": lambda old: on(ONE),
    "value": lambda old: on(ONE),
    "dropout": lambda old: 0.25,
}


def with_head(recipe: Recipe, name: str, **changes: Any) -> Recipe:
    """The recipe with a changed head, also if its parts do not fit together then."""
    slot = next(slot for slot, heads in recipe.slots.items() if name in heads)
    heads = list(recipe.slots[slot].values())
    index = list(recipe.slots[slot]).index(name)
    heads[index] = replace(heads[index], **changes)
    changed = copy.copy(recipe)
    object.__setattr__(changed, slot, replace(heads[0], beside=tuple(heads[1:])))
    return changed


@pytest.mark.parametrize("field", SWAPS)
@pytest.mark.parametrize("recipe", [*LAYERS, VARIED[0]], ids=name_of)
def test_swapping_a_part_of_a_head_changes_its_box_and_no_other(recipe, field):
    before = drawn_parts(plots.diagram(recipe))
    for name, head in recipe.heads.items():
        changed = with_head(recipe, name, **{field: SWAPS[field](getattr(head, field))})
        after = drawn_parts(plots.diagram(changed))
        tokens = {"encoder_next", "decoder_next", "encoder_tokens", "decoder_tokens", ""}
        assert {part for part in after if after[part] != before[part]} - tokens == {name}


def test_other_parts_of_the_layer_change_the_picture():
    lloyd, dot, spherical = recipes.lloyd(), recipes.lloyd_dot(), recipes.spherical()
    pairs = [
        (lloyd, replace(lloyd, tokens=replace(lloyd.tokens, codes=Binary()))),
        (lloyd, replace(lloyd, norm=LayerNorm())),
        (lloyd, replace(lloyd, embeds_again=True)),
        (spherical, replace(spherical, norm=LayerNorm())),
        (dot, replace(dot, feedforward=replace(dot.feedforward, unit="rectified"))),
    ]
    for one, other in pairs:
        assert visible(plots.diagram(one)) != visible(plots.diagram(other))


def test_the_recipes_differ_in_their_pictures():
    shown = [visible(plots.diagram(replace(r, name="", algorithm="", appendix=""))) for r in ALL]
    assert len(set(shown)) == len(shown)


def test_a_part_of_a_users_own_is_named_with_its_parameters():
    def shown(score: Any) -> str:
        svg = plots.diagram(with_head(recipes.lloyd(), "encoder_cross", score=score))
        return " ".join(drawn_parts(svg)["encoder_cross"])

    assert "cos (cosine, sharp 3)" in shown(Cosine(3.0))
    assert "cos (cosine, sharp 2) / √dim" in shown(Scaled(Cosine()))


# ------------------------------------------------- nothing that a recipe says is left out

OTHERS = {
    "first": "average",
    "average": "first",
    "square": "rectified",
    "position": "code",
    "code": "number",
    "number": "position",
}


def mutants(part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Copies of a nested value that differ in one number, word or subspace, and where."""
    if isinstance(part, Subspace):
        yield path, Subspace("another", "?")
    elif is_dataclass(part):
        for field in fields(part):
            if field.name == "stated":  # the parts that its words are about, not its own
                continue
            for where, value in mutants(getattr(part, field.name), f"{path}.{field.name}"):
                changed = copy.copy(part)
                object.__setattr__(changed, field.name, value)
                yield where, changed
    elif isinstance(part, tuple):
        for index, one in enumerate(part):
            for where, value in mutants(one, f"{path}[{index}]"):
                yield where, (*part[:index], value, *part[index + 1 :])
    elif isinstance(part, bool):
        yield path, not part
    elif isinstance(part, int | float):
        yield path, part + 0.5 if isinstance(part, float) else part + 1
    elif isinstance(part, str):
        yield path, OTHERS.get(part, f"{part}x")


@pytest.mark.parametrize("recipe", ALL, ids=name_of)
def test_every_number_word_and_subspace_of_a_recipe_is_shown(recipe):
    changed = list(mutants(recipe))
    some = 1 if isinstance(recipe, Recipe) else min(50, len(changed) // 16)
    check_mutants(recipe, dict(changed[::some]))


@pytest.mark.long
def test_every_number_word_and_subspace_of_relocating_is_shown():
    recipe = recipes.relocating()
    check_mutants(recipe, dict(mutants(recipe)))


def check_mutants(recipe: Any, changed: dict[str, Any]) -> None:
    before = visible(plots.diagram(recipe))
    assert len(changed) >= 15
    assert [w for w, other in changed.items() if visible(plots.diagram(other)) == before] == []


# ------------------------------------------------------------------------------ and the rest


def test_what_is_not_a_recipe_is_refused():
    with pytest.raises(TypeError, match=r"found 'lloyd'; pass a recipe, .*recipes\.lloyd"):
        inspect.unwrap(plots.diagram)("lloyd")  # without the check of types in tests


def test_words_on_words_and_wires_are_found():
    svg = plots.diagram(recipes.lloyd())
    moved = re.sub(r'(<text class="label" x="[\d.]+" y=")[\d.]+(">key, value)', r"\g<1>306\2", svg)
    assert moved != svg
    assert any("key, value" in line for line in collisions(moved))
    longer = svg.replace(">limiting soft-max,<", ">limiting soft-max with a long name of its own<")
    assert any("edge of a card" in line for line in collisions(longer))
    narrow = re.sub(r' width="\d+"', ' width="600"', svg, count=1)
    assert any("outside" in line for line in collisions(narrow))


PROBE = """<script>
const found = [...document.querySelectorAll("svg text")].map(t => t.getBBox().width);
const note = document.body.appendChild(document.createElement("pre"));
note.id = "found";
note.textContent = JSON.stringify(found);
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine to measure words with")
def test_no_word_is_wider_in_a_browser_than_was_planned(tmp_path: Path):
    pictures = [plots.diagram(recipe) for recipe in [*ALL, *VARIED]]
    page = tmp_path / "page.html"
    page.write_text(f"<meta charset=utf-8><body>{''.join(pictures)}{PROBE}", encoding="utf-8")
    flags = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
        f"--user-data-dir={tmp_path / 'profile'}",
    )
    dump = subprocess.run(
        [str(CHROMIUM), *flags, page.as_uri()], capture_output=True, text=True, timeout=120
    )
    note = re.search(r'<pre id="found">(.*?)</pre>', dump.stdout, flags=re.DOTALL)
    assert note, dump.stderr[-500:]
    planned = [word for svg in pictures for word in words(parsed(svg))]
    widths = json.loads(unescape(note[1]))
    assert len(widths) == len(planned) > 500
    assert [
        word.what
        for word, width in zip(planned, widths, strict=True)
        if width > word.right - word.left
    ] == []


def test_the_width_of_words():
    assert text_width("mm", "word") > text_width("mi", "word") > text_width("ii", "word") > 0
    assert text_width("a", "name") > text_width("a", "word")
