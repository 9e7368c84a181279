"""Claims as cells: what the paper says, its number, ours, the difference, and whether it holds."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, Table

COLUMNS = ("the paper says", "paper", "here", "difference", "holds", "note")


def verdicts(claims: Sequence[Claim], loud: bool = False) -> Table:
    """One row for each claim; `loud` sets what does not hold in bold, in Markdown."""
    return Table("", COLUMNS, [_row(claim, "**no**" if loud else "no") for claim in claims])


def summary(claims: Sequence[Claim]) -> str:
    """`5 of 6 claims hold`."""
    held = sum(claim.holds for claim in claims)
    return f"{held} of {len(claims)} claims hold"


def _row(claim: Claim, no: str) -> list[str]:
    apart = "" if claim.difference is None else f"{claim.difference:+.3g}"
    held = "yes" if claim.holds else no
    return [claim.says, _cell(claim.paper), _cell(claim.ours), apart, held, claim.note]


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
