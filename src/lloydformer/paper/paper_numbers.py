"""The numbers that the paper prints, by label, row and column."""

import json
from functools import cache
from importlib.resources import files

from lloydformer.paper.artefact import Record


@cache
def _all() -> dict[str, Record]:
    path = files("lloydformer.paper") / "paper_numbers.json"
    found: dict[str, Record] = json.loads(path.read_text(encoding="utf-8"))
    return found


def numbers(label: str) -> Record:
    """What the paper prints under a label: `what`, `columns` and `rows`."""
    return _all()[label]


def row_names(label: str) -> list[str]:
    """The names of the rows of the paper's table, in its order."""
    return list(numbers(label)["rows"])


def paper_row(label: str, name: str) -> dict[str, float]:
    """One row of the paper's table, by column."""
    table = numbers(label)
    return dict(zip(table["columns"], table["rows"][name], strict=True))


def printed(label: str) -> tuple[list[str], list[list[str]]] | None:
    """Column titles and rows of the paper's table as text; None if the label has no table."""
    found = _all().get(label, {})
    if "columns" not in found:
        return None
    rows = [[name, *(f"{value:g}" for value in row)] for name, row in found["rows"].items()]
    return ["", *found["columns"]], rows
