"""The final values of the curves of fig:trf-train."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.lloyd_comparison import N_STEPS
from lloydformer.paper.trf_train.settings import SIZES_ROW


def tables(result: Record) -> Sequence[TextTable]:
    """One table: a row for each panel and for each number of points."""
    rows = {name: row for name, row in result["rows"].items() if name != SIZES_ROW}
    rows |= {f"n = {n}, random init": row for n, row in result["rows"][SIZES_ROW].items()}
    columns = ["Setting", "Tasks", "Initial", "Lloyd's", "Transformer", "Tasks that it wins"]
    return [
        TextTable(
            f"Mean log objective after {N_STEPS} steps, d = 32, k = 10, n = 512 unless stated "
            "otherwise",
            columns,
            [[name, *_cells(row)] for name, row in rows.items()],
        )
    ]


def _cells(row: Record) -> list[str]:
    ends = [f"{row[name]:.3f}" for name in ("initial", "lloyd", "transformer")]
    return [str(row["n_tasks"]), *ends, f"{100 * row['won']:.0f} %"]
