"""Sizes and columns of tab:rob-res."""

from collections.abc import Iterable

from lloydformer.paper.artefact import Record

LABEL = "rob-res"
N_STEPS, N_CLUSTERS = 10, 10
RUN = 10
"""The paper's number of trials."""
TRIMMED = {"trimmed_0.95": 0.95, "trimmed_0.99": 0.99}
"""The paper's columns: quantiles of the authors' trimming."""
KEPT = {"keep_0.95": 0.95, "keep_0.99": 0.99}
"""The same with the trimming of this package."""
ROBUST = {"robust_0.01": 0.01, "robust_0.001": 0.001}
"""The paper's columns: values of gamma."""


def count_below(rows: Record, columns: Iterable[str]) -> int:
    """The number of sets on which one of the columns is below Lloyd's."""
    names = list(columns)
    return sum(any(row[c] < row["lloyd"] for c in names) for row in rows.values())
