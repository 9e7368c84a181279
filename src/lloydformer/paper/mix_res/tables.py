"""tab:mix-res as text, and a second table with other starts and more steps."""

from collections.abc import Sequence

from lloydformer.learning.families import FAMILIES
from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.compare_to_paper import cell
from lloydformer.paper.lloyd_comparison import N_STEPS
from lloydformer.paper.mix_res.settings import BEYOND, LABEL, TITLES
from lloydformer.paper.paper_numbers import paper_row


def tables(result: Record) -> Sequence[TextTable]:
    """The paper's table with its numbers in brackets, then the columns BEYOND."""
    rows = result["rows"]
    over = f"over {result['n_tasks']} tasks a family, d = 32, k = 10"
    return [
        TextTable(
            f"Mean log objective after {N_STEPS} steps {over} (in brackets the paper's)",
            ["Family", "Initial objective", "Lloyd's", "k-means transformer"],
            [
                [TITLES[f], *(cell(rows[f][c], v, 4) for c, v in paper_row(LABEL, f).items())]
                for f in FAMILIES
            ],
        ),
        TextTable(
            f"Beyond the paper's comparison: the same {over}",
            ["Family", "Lloyd's", "transformer", *BEYOND.values()],
            [
                [TITLES[f], *(f"{rows[f][c]:.4f}" for c in ("lloyd", "transformer", *BEYOND))]
                for f in FAMILIES
            ],
        ),
    ]
