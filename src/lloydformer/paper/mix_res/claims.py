"""The claims of tab:mix-res."""

from collections.abc import Sequence

from lloydformer.learning.tasks import FAMILIES
from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.lloyd_comparison import N_STEPS
from lloydformer.paper.mix_res.settings import COLUMNS, LABEL, TITLES
from lloydformer.paper.paper_numbers import paper_row

NEAR = 0.05
"""Tolerance of a number."""


def claims(result: Record) -> Sequence[Claim]:
    """The two statements of the text, comparisons beyond the paper, and the 15 numbers."""
    rows = result["rows"]
    largest = max(abs(rows[f][c] - v) for f in FAMILIES for c, v in paper_row(LABEL, f).items())
    return [
        Claim(
            "The transformer improves the objective over the initial centers, in all families.",
            "5 of 5", f"{_count(rows, 'transformer', 'initial')} of 5",
            _count(rows, "transformer", "initial") == 5,
        ),
        Claim(
            "It outperforms Lloyd's algorithm in all families but Cauchy.",
            "all but Cauchy", _lower(rows),
            _lower(rows) == "all but Cauchy",
            "This is so where both begin at random points, for as many steps.",
        ),
        Claim(
            f"All 15 numbers of the table agree within {NEAR}.",
            "15 numbers", f"largest difference {largest:.3f}", largest <= NEAR,
            f"Over {result['n_tasks']} tasks a family.",
        ),
        *_beyond(rows),
        *(_number(result, family, column) for family in FAMILIES for column in COLUMNS),
    ]  # fmt: skip


def _beyond(rows: Record) -> list[Claim]:
    """Comparisons that the paper does not make."""
    better = _count(rows, "greedy", "transformer")
    gain = max(rows[f]["transformer"] - rows[f]["polished"] for f in FAMILIES)
    return [
        Claim(
            "Beyond the paper: the transformer is also ahead of Lloyd's algorithm from one start "
            "of greedy k-means++.",
            "not compared", f"behind in {better} of 5 families", better == 0,
            "A better start is worth more than the learned step: see the table." if better else "",
        ),
        Claim(
            "Beyond the paper: the end point of the transformer is not a minimum of Lloyd's "
            "algorithm.",
            "not measured", f"{N_STEPS} more Lloyd steps lower it by up to {gain:.2f}",
            gain > 0.005,
        ),
    ]  # fmt: skip


def _number(result: Record, family: str, column: str) -> Claim:
    """One number of the table."""
    paper, ours = paper_row(LABEL, family)[column], result["rows"][family][column]
    says = f"{TITLES[family]}, {COLUMNS[column]}: mean log objective."
    who, step = ("lloyd", 0) if column == "initial" else (column, -1)
    error = result["curves"][family][who]["error"][step]
    note = f"Standard error of {result['n_tasks']} tasks: {error:.3f}."
    return Claim(says, paper, ours, abs(ours - paper) <= NEAR, note)


def _count(rows: Record, one: str, other: str) -> int:
    """In how many families `one` is below `other`."""
    return sum(row[one] < row[other] for row in rows.values())


def _lower(rows: Record) -> str:
    """The families in which the transformer is below Lloyd's, in words."""
    missing = [TITLES[f] for f in FAMILIES if rows[f]["transformer"] >= rows[f]["lloyd"]]
    return f"all but {', '.join(missing)}" if missing else "all"
