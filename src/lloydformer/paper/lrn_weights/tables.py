"""The measures behind fig:lrn-weights."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable


def tables(result: Record) -> Sequence[TextTable]:
    """One table: a row for each matrix."""
    columns = ["Matrix", "cosine", "dominance of the diagonal", "squared norm on it"]
    return [
        TextTable(
            "Learned against constructed: cosine of the two matrices; mean size of the entries on "
            "the constructed diagonal over that of the others in its block; share of the squared "
            "norm on that diagonal (of a matrix without structure: 0, 1, at most 0.02)",
            columns,
            [
                [name, f"{row['cosine']:+.2f}", f"{row['dominance']:.1f}", f"{row['share']:.2f}"]
                for name, row in result["rows"].items()
            ],
        )
    ]
