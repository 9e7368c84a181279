"""tab:med-res as text, twice: of the last medoids and of the best."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.compare_to_paper import cell
from lloydformer.paper.med_res.fasterpam import MISSING
from lloydformer.paper.med_res.settings import GAPS, LABEL, N_CLUSTERS, N_STEPS, fasterpam_sample
from lloydformer.paper.paper_numbers import paper_row, row_names


def tables(result: Record) -> Sequence[TextTable]:
    """The paper's table with its numbers in brackets: last medoids, then best medoids."""
    over = f"{N_STEPS} steps, {result['n_trials']} trials, k = {N_CLUSTERS}"
    gaps = [f"delta = {column}" for column in GAPS]
    return [
        TextTable(
            f"Mean log objective of the last medoids, {over} (in brackets the paper's)",
            ["Dataset", "Initial", *gaps],
            _rows(result, ""),
        ),
        TextTable(
            "The same of the best medoids seen, and beyond the paper FasterPAM on "
            f"{fasterpam_sample(result)}, and the search of KMedoids",
            ["Dataset", "Initial", *gaps, "FasterPAM", "KMedoids"],
            [
                [*cells, _fasterpam(row := result["rows"][cells[0]]), f"{row['relocate']:.3f}"]
                for cells in _rows(result, "best_")
            ],
        ),
    ]


def _rows(result: Record, kind: str) -> list[list[str]]:
    rows = result["rows"]
    return [
        [
            name,
            cell(rows[name]["initial"], paper_row(LABEL, name)["initial"], 3),
            *(cell(rows[name][f"{kind}{c}"], paper_row(LABEL, name)[c], 3) for c in GAPS),
        ]
        for name in row_names(LABEL)
    ]


def _fasterpam(row: Record) -> str:
    return MISSING if row["fasterpam"] is None else f"{row['fasterpam']:.3f}"
