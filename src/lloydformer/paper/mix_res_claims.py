"""What the paper says of tab:mix-res, and whether it is so."""

from collections.abc import Sequence

from lloydformer.learning.tasks import FAMILIES
from lloydformer.paper.artefact import Claim, Found
from lloydformer.paper.contest import N_STEPS
from lloydformer.paper.numbers import numbers

TITLES = {
    "normal": "Normal", "cauchy": "Cauchy", "gumbel": "Gumbel", "laplace": "Laplace",
    "lognormal": "LogNormal",
}  # fmt: skip
COLUMNS = {"initial": "initial", "lloyd": "Lloyd's", "transformer": "transformer"}
BEYOND = {
    "polished": f"transformer, then {N_STEPS} Lloyd steps",
    "greedy": "Lloyd's from greedy k-means++",
    "ten_random": "Lloyd's, best of ten random starts",
    "ten_greedy": "Lloyd's, best of ten greedy k-means++",
}
NEAR = 0.05


def claims(result: Found) -> Sequence[Claim]:
    """The two statements of the text, what is beyond them, and the 15 numbers."""
    rows = result["rows"]
    apart = max(abs(rows[f][c] - v) for f in FAMILIES for c, v in printed(f).items())
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
            f"All 15 numbers of the table come out within {NEAR}.",
            "15 numbers", f"largest difference {apart:.3f}", apart <= NEAR,
            f"Over {result['n_tasks']} tasks a family.",
        ),
        *_beyond(rows),
        *(_number(result, family, column) for family in FAMILIES for column in COLUMNS),
    ]  # fmt: skip


def _beyond(rows: Found) -> list[Claim]:
    """What the paper's comparison leaves out."""
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
            "Beyond the paper: where the transformer ends is not a minimum that Lloyd steps leave "
            "as it is.",
            "not measured", f"{N_STEPS} Lloyd steps more lower it by up to {gain:.2f}",
            gain > 0.005,
        ),
    ]  # fmt: skip


def _number(result: Found, family: str, column: str) -> Claim:
    paper, ours = printed(family)[column], result["rows"][family][column]
    says = f"{TITLES[family]}, {COLUMNS[column]}: mean log objective."
    who, step = ("lloyd", 0) if column == "initial" else (column, -1)
    error = result["curves"][family][who]["error"][step]
    note = f"Standard error of {result['n_tasks']} tasks: {error:.3f}."
    return Claim(says, paper, ours, abs(ours - paper) <= NEAR, note)


def printed(family: str) -> dict[str, float]:
    """The paper's row of a family, by column."""
    table = numbers("mix-res")
    return dict(zip(table["columns"], table["rows"][family], strict=True))


def _count(rows: Found, one: str, other: str) -> int:
    return sum(row[one] < row[other] for row in rows.values())


def _lower(rows: Found) -> str:
    missing = [TITLES[f] for f in FAMILIES if rows[f]["transformer"] >= rows[f]["lloyd"]]
    return f"all but {', '.join(missing)}" if missing else "all"
