"""The mean Loss of fig:parameter_sweep at every level."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.compare_to_paper import cell
from lloydformer.paper.parameter_sweep.settings import GAMMAS


def tables(result: Record) -> Sequence[TextTable]:
    """One table: a row for each level of each parameter, the authors' means in brackets."""
    columns = ["", *(f"γ = {gamma} (authors)" for gamma in GAMMAS)]
    rows = [
        [name, *(cell(row[g], row[g + len(GAMMAS)], 3) for g in range(len(GAMMAS)))]
        for name, row in result["rows"].items()
    ]
    caption = "Log objective of the transformer minus Lloyd's: mean over all else"
    return [TextTable(caption, columns, rows)]
