"""docs/guarantees.md: each promise names tests in a comment, and these are there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "promise |" not in line]
ROWS = [row for row in ROWS if not row.startswith("| ---")]


def functions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_promise_has_a_test_that_is_there():
    assert len(ROWS) > 15
    for row in ROWS:
        _, promise, conditions, _ = (cell.strip() for cell in row.split("|"))
        tests = "".join(re.findall(r"<!-- (.*?) -->", conditions))
        named = re.findall(r"(tests/[\w/]+\.py)::(test_\w+)", tests)
        assert named, promise
        missing = [f"{path}::{name}" for path, name in named if name not in functions(path)]
        assert not missing, (promise, missing)


def test_every_test_of_the_chaos_suite_holds_a_promise():
    for path in (ROOT / "tests" / "chaos").glob("test_*.py"):
        for name in functions(f"tests/chaos/{path.name}"):
            if name.startswith("test_"):
                assert f"tests/chaos/{path.name}::{name}" in PAGE, name
