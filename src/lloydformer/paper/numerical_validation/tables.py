"""The objective after each layer of fig:numerical_validation."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable


def tables(result: Record) -> Sequence[TextTable]:
    """One table: a row for each layer, with the number of labels that differ there."""
    rows = [
        [layer, *(f"{value:.6g}" for value in pair), str(differ)]
        for (layer, pair), differ in zip(
            result["rows"].items(), [0, *result["run"]["labels"]], strict=True
        )
    ]
    columns = ["layers", "Lloyd's", "transformer", "labels that differ"]
    return [TextTable("k-means objective, and labels that differ", columns, rows)]
