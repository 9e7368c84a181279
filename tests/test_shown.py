"""What is shown is run: the code in the README and in docs, and the tables printed there."""

import re
from pathlib import Path

import pytest

import lloydformer as lf

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
CODE = re.compile(r"```python\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[str]:
    return CODE.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_code_on_the_page_runs(page):
    names: dict[str, object] = {}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)


def test_there_is_code_to_run():
    assert sum(len(blocks(p)) for p in PAGES) >= 9


def test_the_readme_shows_the_table_of_the_recipes():
    shown = (ROOT / "README.md").read_text(encoding="utf-8")
    for recipe in lf.recipes.table():
        cells = [f"`{recipe.name}`", *list(recipe.row().values())[:-1]]
        assert f"| {' | '.join(cells)} |" in shown


def test_what_new_algorithm_prints_is_what_it_shows():
    page = (ROOT / "docs" / "new-algorithm.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    exec(CODE.findall(page)[0], names)
    assert str(names["snapping"]) in page


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)\)", prose):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
