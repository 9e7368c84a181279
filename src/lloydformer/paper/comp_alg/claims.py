"""The claims of tab:comp-alg: its cells, and that each row is the algorithm that it names."""

from collections.abc import Mapping, Sequence

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.comp_alg.settings import BEYOND, paper_table
from lloydformer.verify.finding import TOLERANCE

_NOTES = {
    "lloyd_dot": "With plain squares in the network; rectified ones drop negative coordinates.",
    "spherical": "RMSNorm with gain 1/√d; the proof's V_4 = V_3 must read V_4 = -V_3.",
    "soft": "Linear attention is X σ(Yᵀ), columns normalised over the points.",
    "trimmed": "Norm-max with an inverse temperature for each cluster, and √δ for the stated 2δ.",
    "robust": "The row; the appendix builds another circuit for it, robust_lifted below.",
    "medoids": "Draw for draw, with the same noise on both sides.",
}


def claims(result: Record) -> Sequence[Claim]:
    """The cells, the rows of the table, and the circuits beyond it."""
    wrong = differences(result["rows"])
    cells = sum(map(len, paper_table()["rows"].values()))
    return [
        Claim("the recipes print the paper's table, cell by cell", f"{cells} cells",
              f"{cells - len(wrong)} of them", not wrong, "; ".join(wrong)),
        *(_row(result, name, row) for name, row in paper_table()["rows"].items()),
        *(_variation(result, name) for name in BEYOND),
    ]  # fmt: skip


def differences(rows: Mapping[str, list[str]]) -> list[str]:
    """Every cell that differs from the paper's, in words."""
    theirs = paper_table()
    return [
        f"{name}, {column}: {mine} and not {printed}"
        for name, row in theirs["rows"].items()
        for column, printed, mine in zip(
            theirs["columns"], row, rows.get(name, [""] * len(row)), strict=True
        )
        if mine != printed
    ]


def _row(result: Record, name: str, row: list[str]) -> Claim:
    parts = ", ".join(row[:4]) + "".join(
        f", {part}" for part, cell in zip(("norm", "network"), row[4:6], strict=True) if cell == "✓"
    )
    says = f"{parts}: {row[6].lstrip('*')}"
    return Claim(says, "exact", *_verdict(result["compared"][name]), _NOTES.get(name, ""))


def _variation(result: Record, name: str) -> Claim:
    algorithm, how = BEYOND[name]
    says = f"{algorithm}, {how}" if algorithm.startswith("*") else f"beyond: {algorithm}, {how}"
    return Claim(says, "exact", *_verdict(result["compared"][name]), f"The recipe {name}.")


def _verdict(found: Record) -> tuple[str, bool]:
    """The largest deviation of the centers, in spreads, and whether it is only rounding."""
    parts = (found["layers"], found["free"])
    worst, turned = max(p["deviation"] for p in parts), sum(p["decisions"] for p in parts)
    count = sum(p["problems"] for p in parts)
    words = f"off by {worst:.0e} on {count} problems, {turned} decisions differ"
    return words, worst <= TOLERANCE and turned == 0
