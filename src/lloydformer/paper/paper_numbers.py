"""The numbers that the paper prints, by label, row and column, with ours."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from lloydformer.paper.artefact import Record, TextTable


# cached: every verdict on a number asks for a row
@cache
def _read_all() -> dict[str, Record]:
    path = files("lloydformer.paper") / "paper_numbers.json"
    numbers: dict[str, Record] = json.loads(path.read_text(encoding="utf-8"))
    return numbers


def paper_numbers(label: str) -> Record:
    """Return the paper's numbers under a label: `what`, `rows`, and `columns` of a table."""
    return _read_all()[label]


def row_names(label: str) -> list[str]:
    """Return the names of the rows of the paper's table, in its order."""
    return list(paper_numbers(label)["rows"])


def paper_row(label: str, name: str) -> dict[str, float]:
    """Return one row of the paper's table, by column."""
    table = paper_numbers(label)
    return dict(zip(table["columns"], table["rows"][name], strict=True))


def numbers_table(label: str) -> list[TextTable]:
    """Return the paper's table as text; empty if the label has no table of numbers."""
    found = _read_all().get(label, {})
    if "columns" not in found:
        return []
    rows = [[name, *(f"{value:g}" for value in row)] for name, row in found["rows"].items()]
    return [TextTable("The paper", ["", *found["columns"]], rows)]


def beside(ours: float, theirs: float, digits: int) -> str:
    """Return our number, followed by the paper's in brackets."""
    return f"{ours:.{digits}f} ({theirs:.{digits}f})"


def rows_beside_paper(
    label: str, rows: Record, columns: Mapping[str, str], digits: int
) -> list[list[str]]:
    """Return the rows of the paper's table as text, ours with the paper's numbers in brackets.

    columns: the key of our rows for each column of the paper.
    """
    return [
        [
            name,
            *(beside(rows[name][c], paper_row(label, name)[p], digits) for p, c in columns.items()),
        ]
        for name in row_names(label)
    ]
