"""The paper's own numbers, by the labels of its tables and figures."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _all() -> dict[str, Any]:
    return json.loads((files("lloydformer.paper") / "numbers.json").read_text(encoding="utf-8"))


def numbers(label: str) -> dict[str, Any]:
    """What the paper prints under a label: `what`, `columns` and `rows`."""
    return _all()[label]


def printed(label: str) -> tuple[list[str], list[list[str]]] | None:
    """The paper's table as cells, columns first; None for what is no table."""
    found = _all().get(label, {})
    if "columns" not in found:
        return None
    rows = [[name, *(f"{value:g}" for value in row)] for name, row in found["rows"].items()]
    return ["", *found["columns"]], rows
