"""The verdicts on tab:mix-res."""

from collections.abc import Sequence
from math import hypot

from lloydformer.learning.families import FAMILIES
from lloydformer.paper.artefact import Record
from lloydformer.paper.lloyd_comparison import N_STEPS
from lloydformer.paper.mix_res.settings import COLUMNS, LABEL, TITLES
from lloydformer.paper.paper_numbers import paper_row
from lloydformer.paper.verdict import (
    Answer,
    Tolerance,
    Verdict,
    beyond,
    claim,
    less,
    number,
    together,
)

_NEAR = Tolerance(
    0.05,
    "Other tasks and another training: two means over 320 tasks differ by 0.02 (one standard "
    "error) by chance.",
)


def verdicts(result: Record) -> Sequence[Verdict]:
    """The sentence of the text, the 15 numbers, and comparisons beyond the paper."""
    return [
        _families(result),
        *(_number(result, family, column) for family in FAMILIES for column in COLUMNS),
        *_beyond(result["rows"]),
    ]


def _families(result: Record) -> Verdict:
    rows = result["rows"]
    others = [family for family in FAMILIES if family != "cauchy"]
    return claim(
        "The results in tab:mix-res and fig:mix-res show that all distribution mixtures, the "
        "trained k-means transformer is able to improve the k-means objective over the initial "
        "centers, and outperforms Lloyd's algorithm for all but the tasks generated from mixtures "
        "of Cauchy distributions.",
        "asec:trf-train",
        f"below the initial objective in {_count(rows, 'transformer', 'initial')} of 5 families; "
        f"below Lloyd's in {_lower(rows)}",
        together(
            *(_below(result, family, "transformer", "initial") for family in FAMILIES),
            *(_below(result, family, "transformer", "lloyd") for family in others),
            _below(result, "cauchy", "lloyd", "transformer"),
        ),
        f"Over {result['n_tasks']} tasks a family.",
    )  # fmt: skip


def _number(result: Record, family: str, column: str) -> Verdict:
    """One number of the table."""
    return number(
        f"{TITLES[family]}, {COLUMNS[column]}", "tab:mix-res", paper_row(LABEL, family)[column],
        result["rows"][family][column], _NEAR, _error(result, family, column),
    )  # fmt: skip


def _below(result: Record, family: str, one: str, other: str) -> Answer:
    row, errors = result["rows"][family], [_error(result, family, c) for c in (one, other)]
    return less(row[one] - row[other], hypot(*errors))


def _error(result: Record, family: str, column: str) -> float:
    """The standard error of a mean over the tasks."""
    who, step = ("lloyd", 0) if column == "initial" else (column, -1)
    error: float = result["curves"][family][who]["error"][step]
    return error


def _beyond(rows: Record) -> list[Verdict]:
    better = _count(rows, "greedy", "transformer")
    gain = max(rows[f]["transformer"] - rows[f]["polished"] for f in FAMILIES)
    return [
        beyond(
            "And Lloyd's algorithm from one start of greedy k-means++?",
            f"below the transformer from random points in {better} of 5 families",
        ),
        beyond(
            "Are the transformer's final centers a minimum of Lloyd's algorithm?",
            f"{N_STEPS} more Lloyd steps lower the log objective by up to {gain:.2f}",
        ),
    ]  # fmt: skip


def _count(rows: Record, one: str, other: str) -> int:
    """In how many families `one` is below `other`."""
    return sum(row[one] < row[other] for row in rows.values())


def _lower(rows: Record) -> str:
    """The families in which the transformer is below Lloyd's, in words."""
    missing = [TITLES[f] for f in FAMILIES if rows[f]["transformer"] >= rows[f]["lloyd"]]
    return f"all but {', '.join(missing)}" if missing else "all"
