"""tab:rob-res as text, and a second table with the differences to Lloyd's algorithm."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.compare_to_paper import cell
from lloydformer.paper.paper_numbers import paper_row, row_names
from lloydformer.paper.rob_res.settings import KEPT, LABEL, N_CLUSTERS, N_STEPS, ROBUST, TRIMMED

TITLES = {
    "initial": "Initial objective", "lloyd": "Lloyd's", "trimmed_0.95": "trimmed, tau = 0.95",
    "trimmed_0.99": "tau = 0.99", "robust_0.01": "robust, gamma = 0.01",
    "robust_0.001": "gamma = 0.001",
}  # fmt: skip


def tables(result: Record) -> Sequence[TextTable]:
    """The paper's table with its numbers in brackets, then the differences to Lloyd's."""
    rows, errors = result["rows"], result["errors"]
    over = f"{result['n_trials']} trials, {N_STEPS} steps, k = {N_CLUSTERS}"
    settings = {**{c: TITLES[c] for c in (*TRIMMED, *ROBUST)},
                **{c: f"keep = {q:g}" for c, q in KEPT.items()}}  # fmt: skip
    return [
        TextTable(
            f"Mean log objective, {over} (in brackets the paper's)",
            ["Dataset", *TITLES.values()],
            [
                [name, *(cell(rows[name][c], paper_row(LABEL, name)[c], 4) for c in TITLES)]
                for name in row_names(LABEL)
            ],
        ),
        TextTable(
            "Beyond the paper: difference to Lloyd's in thousandths, with its standard error; "
            "`keep` is the trimming of this package",
            ["Dataset", *settings.values()],
            [
                [name, *(_thousandths(rows[name], errors[name], c) for c in settings)]
                for name in row_names(LABEL)
            ],
        ),
    ]


def _thousandths(row: Record, error: Record, column: str) -> str:
    return f"{1000 * (row[column] - row['lloyd']):+.1f} ± {1000 * error[column]:.1f}"
