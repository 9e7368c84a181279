"""tab:comp-alg as text, with the measured deviations, and the circuits beyond it."""

from collections.abc import Iterator, Sequence

from lloydformer.paper.artefact import Record, TextTable
from lloydformer.paper.comp_alg.settings import BEYOND


def tables(result: Record) -> Sequence[TextTable]:
    """Both tables end with the number of problems and the largest deviation."""
    measured = ("problems", "largest deviation")
    rows = [[*row, *_measured(result, name)] for name, row in result["rows"].items()]
    beyond = [[name, *BEYOND[name], *_measured(result, name)] for name in BEYOND]
    return [
        TextTable("Configurations and their algorithms, printed from the recipes",
                  [*result["columns"], *measured], rows),
        TextTable("Beyond the table", ["recipe", "algorithm", "how", *measured], beyond),
    ]  # fmt: skip


def _measured(result: Record, name: str) -> Iterator[str]:
    parts = list(result["compared"][name].values())
    yield str(sum(part["problems"] for part in parts))
    yield f"{max(part['deviation'] for part in parts):.0e}"
