"""What is shown is run and prints what is shown: README, docs and examples.

Below a Python block that prints stands a text block with its output. The docstring of an example
ends with its output.
"""

import ast
import contextlib
import io
import json
import re
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import lloydformer as lf
from lloydformer.engines.native.folds import FOLDS
from lloydformer.estimators import ALGORITHMS
from lloydformer.plans.lower import RULES

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(-?\d+(?:\.\d*)?(?:e[-+]?\d+)?)")
PNG = b"\x89PNG\r\n\x1a\n"


def blocks(page: Path) -> list[tuple[str, str]]:
    """Python blocks, each with the text block right below it, or an empty text."""
    return CODE.findall(page.read_text(encoding="utf-8"))


def differ(printed: str, shown: str) -> bool:
    """Words must be equal; decimals may differ by one in the last digit that is shown."""
    found, expected = (
        [part.strip() for part in NUMBER.split(" ".join(text.split()))] for text in (printed, shown)
    )
    return len(found) != len(expected) or not all(map(alike, found, expected))


def alike(printed: str, shown: str) -> bool:
    if printed == shown or not (NUMBER.fullmatch(printed) and NUMBER.fullmatch(shown)):
        return printed == shown
    digits, _, power = shown.partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    slack = 1.01 * last if last < 1 else 0.0  # whole numbers are exact
    return abs(float(printed) - float(shown)) <= slack


@pytest.fixture
def registers():
    """What a page adds to the registers of algorithms, lowering rules and kernels is removed."""
    kept = [(register, dict(register)) for register in (ALGORITHMS, FOLDS)]
    rules = RULES.copy()
    yield
    RULES[:] = rules
    for register, before in kept:
        register.clear()
        register.update(before)


@pytest.mark.filterwarnings("ignore:Port .* is already in use")  # of a cluster's dashboard
@pytest.mark.usefixtures("registers")
@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_on_the_page_prints_what_stands_below_it(page):
    names: dict[str, object] = {"__name__": "__main__"}  # as in a script
    for code, shown in blocks(page):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, str(page), "exec"), names)
        found = printed.getvalue()
        assert not differ(found, shown), f"{page.name}: this block\n\n{code}\nprints\n\n{found}"


def is_installed(notebook: Path) -> bool:
    return "transformer_lens" not in notebook.name or find_spec("transformer_lens") is not None


@pytest.mark.long  # TransformerLens takes half a minute to import
@pytest.mark.filterwarnings("ignore")  # of TransformerLens
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_cells_of_a_notebook_print_what_stands_below_them(notebook):
    if not is_installed(notebook):
        pytest.skip('the extra "interp" is not installed')
    names: dict[str, object] = {"__name__": "__main__"}
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert len(cells) > 8
    for cell in cells:
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
            shown = "".join(line for output in cell["outputs"] for line in output["text"])
            assert not differ(printed.getvalue(), shown), printed.getvalue()


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_an_example_prints_what_it_says_and_draws_a_picture(script, tmp_path, monkeypatch, capsys):
    picture = tmp_path / "given.png"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), str(picture)])
    plt.switch_backend("Agg")
    runpy.run_path(str(script), run_name="__main__")
    plt.close("all")
    text = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    found = capsys.readouterr().out
    assert not differ(found, text.split("It prints:\n")[1]), f"{script.name} prints\n\n{found}"
    assert picture.read_bytes().startswith(PNG)
    assert picture.stat().st_size > 10_000
    assert list(tmp_path.iterdir()) == [picture]  # and nothing else


def test_there_is_code_to_run():
    assert sum(len(blocks(p)) for p in PAGES) >= 30
    assert sum(bool(shown) for p in PAGES for _, shown in blocks(p)) >= 13
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize(
    ("printed", "shown"),
    [("a 1", "b 1"), ("[1 2]", "[1 3]"), ("0.123", "0.125"), ("1.00", "1.02"), ("1.5e-3", "1.5e-4"),
     ("2.", "1."), ("101", "100"), ("1 2 3", "1 2"), ("12", "1 2"), ("1", ""), ("", "1"),
     ("nan", "1.0")],
)  # fmt: skip
def test_another_output_is_found(printed, shown):
    assert differ(printed, shown)


@pytest.mark.parametrize(
    ("printed", "shown"), [("0.1236", "0.123"), ("1.51e-3", "1.5e-3"), ("a  1\n", "a 1"), ("", "")]
)
def test_last_digits_and_spaces_are_free(printed, shown):
    assert not differ(printed, shown)


def test_the_page_of_recipes_shows_their_table():
    shown = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    for recipe in lf.recipes.table():
        cells = [f"`{recipe.name}`", *list(recipe.row().values())[:-1]]
        assert f"| {' | '.join(cells)} |" in shown
    others = [name for name in lf.recipes.__all__ if hasattr(lf.recipes, name)]
    makers = {make.__name__ for make in (*lf.recipes.CHANGES, lf.recipes.table)}
    assert [name for name in others if name not in makers and f"`{name}`" not in shown] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text(encoding="utf-8").count("\n") <= 120


def test_every_page_is_in_the_navigation_once():
    """Without a title there, so that the navigation shows the first heading of the page."""
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
    listed = re.findall(r"^ +- ([\w/-]+\.md)$", nav, re.MULTILINE)
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert sorted([*listed, "index.md"]) == sorted(pages)
