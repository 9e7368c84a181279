"""The measures behind fig:lrn-attn-map."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable


def tables(result: Record) -> Sequence[TextTable]:
    """One table: a row for each head."""
    columns = [
        "Attention", "keys attended to", "constructed", "largest weight",
        "weight where the construction has it", "distance to the constructed map",
    ]  # fmt: skip
    return [
        TextTable(
            f"Learned maps, means over {result['n_tasks']} tasks; keys attended to is the "
            "exponential of the entropy; the distance is total variation, between 0 and 1",
            columns,
            [[head.replace("_", " "), *_cells(row)] for head, row in result["rows"].items()],
        )
    ]


def _cells(row: Record) -> list[str]:
    keys = f"{row['keys']:.1f} of {row['of']:.0f}"
    names = ("largest", "mass", "distance")
    return [keys, f"{row['built_keys']:.1f}", *(f"{row[name]:.3f}" for name in names)]
