"""Claims as a table: the statement, the paper's number, ours, the difference and the verdict."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, TextTable

COLUMNS = ("the paper says", "paper", "here", "difference", "holds", "note")


def verdicts(claims: Sequence[Claim], loud: bool = False) -> TextTable:
    """One row for each claim; `loud` marks failed claims in bold, as Markdown."""
    return TextTable("", COLUMNS, [_row(claim, "**no**" if loud else "no") for claim in claims])


def summary(claims: Sequence[Claim]) -> str:
    """A count, such as `5 of 6 claims hold`."""
    held = sum(claim.holds for claim in claims)
    return f"{held} of {len(claims)} claims hold"


def _row(claim: Claim, no: str) -> list[str]:
    difference = "" if claim.difference is None else f"{claim.difference:+.3g}"
    holds = "yes" if claim.holds else no
    return [claim.says, _cell(claim.paper), _cell(claim.ours), difference, holds, claim.note]


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"
