"""Our numbers next to the paper's: cells with both, and the largest difference."""

from collections.abc import Iterable

from lloydformer.paper.artefact import Record
from lloydformer.paper.paper_numbers import paper_row


def cell(ours: float, paper: float, digits: int) -> str:
    """Our number, followed by the paper's in brackets."""
    return f"{ours:.{digits}f} ({paper:.{digits}f})"


def largest_difference(
    label: str, rows: Record, columns: Iterable[str], among: Iterable[str]
) -> tuple[float, str]:
    """The largest absolute difference in these columns of the rows `among`, and its row."""
    differences = [
        (abs(rows[name][column] - paper_row(label, name)[column]), name)
        for name in among
        for column in columns
    ]
    largest, name = max(differences)
    return round(largest, 4), name
