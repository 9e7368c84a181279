"""Jobs and commands use public names of other modules only."""

import ast
from pathlib import Path

import pytest

import lloydformer

ROOT = Path(lloydformer.__file__).parent
SOURCES = {
    str(path.relative_to(ROOT)): path
    for room in ("app/jobs", "app/cli")
    for path in sorted((ROOT / room).rglob("*.py"))
}


def private_uses(source: str) -> list[str]:
    """Private attributes of objects other than `self`, and private names that are imported."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            found += [] if own or node.attr.startswith("__") else [node.attr]
        elif isinstance(node, ast.ImportFrom):
            found += [a.name for a in node.names if a.name.startswith("_") and a.name[1] != "_"]
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_no_private_name_of_another_module_is_used(name):
    assert private_uses(SOURCES[name].read_text(encoding="utf-8")) == []


def test_private_uses_are_found():
    source = "from a import _b, __version__\nmodel._view\nself._own\nself.model._view\n"
    assert sorted(private_uses(source)) == ["_b", "_view", "_view"]
