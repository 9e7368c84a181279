"""tab:openml-trf as text, and a second table with other starts and more steps."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.compare_to_paper import cell
from lloydformer.paper.openml_trf.settings import BEYOND, COLUMNS, LABEL, N_STEPS
from lloydformer.paper.paper_numbers import paper_row, row_names


def tables(result: Record) -> Sequence[TextTable]:
    """The paper's table with its numbers in brackets, then the columns BEYOND."""
    rows, over = result["rows"], f"{result['n_trials']} trials, {N_STEPS} steps"
    return [
        TextTable(
            f"Mean and standard deviation of the log objective, {over} (in brackets the paper's)",
            ["Dataset", *COLUMNS.values(), "relative difference"],
            [[name, *_cells(name, rows[name])] for name in row_names(LABEL)],
        ),
        TextTable(
            f"Beyond the paper's comparison: mean log objective, {over}",
            ["Dataset", "Lloyd's", "transformer", *BEYOND.values()],
            [
                [name, *(f"{rows[name][c]:.2f}" for c in ("lloyd", "transformer", *BEYOND))]
                for name in row_names(LABEL)
            ],
        ),
    ]


def _cells(name: str, row: Record) -> list[str]:
    paper = paper_row(LABEL, name)
    cells = [
        f"{row[c]:.2f} ± {row[f'{c}_std']:.2f} ({paper[c]:.2f} ± {paper[f'{c}_std']:.2f})"
        for c in COLUMNS
    ]
    relative = "relative_diff_percent"
    return [*cells, f"{cell(row[relative], paper[relative], 2)} %"]
