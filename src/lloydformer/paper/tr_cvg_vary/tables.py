"""The final values of the curves of fig:tr-cvg-vary."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.training_curves import table


def tables(result: Record) -> Sequence[TextTable]:
    """One table: a row for each setting."""
    return [table(result)]
