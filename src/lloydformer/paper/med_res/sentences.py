"""The sentences of the text on tab:med-res."""

from collections.abc import Iterable

from lloydformer.paper.artefact import Record
from lloydformer.paper.med_res.settings import BETWEEN, ENDS, GAPS, LABEL
from lloydformer.paper.paper_numbers import paper_row, row_names
from lloydformer.paper.verdict import Answer, Verdict, claim, judged

_TEXT = "sec:methods:new:kmeds"
KINDS = {"best_": "best medoids of a run", "": "last medoids"}
"""The beginnings of the columns, and their meaning."""
SMALL = ("0.01", "1")
"""The gaps above 0 with which medoids can be drawn from outside of the cluster."""


def sentences(result: Record) -> list[Verdict]:
    """That the best gap is above 0, that it is not too large, and that a balance is critical."""
    return [_above(result), _not_too_large(result), _balance(result)]


def _above(result: Record) -> Verdict:
    better, worse = (_sets(result, BETWEEN, ENDS[:1], sign) for sign in (-1, 1))
    chance = len(result["rows"]) * (len(GAPS) - 1) / len(GAPS)
    return claim(
        "The best objectives (emphasized in tab:med-res) are found by values of δ>0, thereby "
        "lowering the selection probability from outside the current cluster",
        _TEXT,
        f"the best δ is above 0 on {_counted(result, ENDS[:1])}; by more than two standard errors "
        f"on {better}",
        _most(result, better, worse),
        f"In the paper's table on {_printed(ENDS[:1])} of 10 (not on ringnorm). If δ made no "
        f"difference, chance would give {chance:.1f} of {len(result['rows'])}.",
    )  # fmt: skip


def _not_too_large(result: Record) -> Verdict:
    """What the best gap is not, by the two readings of 'too large'."""
    large = [gap for gap in GAPS if GAPS[gap] >= 100]
    better, worse = (_sets(result, SMALL, large, sign) for sign in (-1, 1))
    answer = _most(result, better, worse)
    return claim(
        "The best objectives (emphasized in tab:med-res) are found by [...] not too large δ which "
        "enforces within cluster sampling.",
        _TEXT,
        f"the best δ is below 100 on {_counted(result, large)}, and below 10^15 on "
        f"{_counted(result, ENDS[1:])}",
        Answer.OPEN if answer is Answer.UNDECIDED else answer,
        "The text does not say which δ is too large. A δ of 100 already enforces sampling within "
        f"the cluster (see below), and in the paper's table the best is below 100 on "
        f"{_printed(large)} of 10 sets, and below 10^15 on {_printed(ENDS[1:])}. Here 0.01 or 1 is "
        f"better than all of 100 to 10^15 by more than two standard errors on {better} of "
        f"{len(result['rows'])}.",
    )  # fmt: skip


def _balance(result: Record) -> Verdict:
    better, worse = (_sets(result, BETWEEN, ENDS, sign) for sign in (-1, 1))
    return claim(
        "The results highlight that it is critical to balance (i) the ability to sample from "
        "outside the current cluster, with (ii) exploiting strong centroid candidates within the "
        "current cluster.",
        _TEXT,
        f"a δ between 0 and 10^15 is better than both on {better} of {len(result['rows'])} sets, "
        f"by more than two standard errors of {result['n_trials']} trials",
        _most(result, better, worse),
    )  # fmt: skip


def _most(result: Record, better: int, worse: int) -> Answer:
    """By whether most sets are clearly better, or clearly worse."""
    half = len(result["rows"]) / 2
    return judged(better > half, enough=worse > half)


def _counted(result: Record, not_one_of: Iterable[str]) -> str:
    """On how many sets the best gap is none of these, for both kinds of medoids."""
    rows, none_of = result["rows"].values(), list(not_one_of)
    counts = [
        f"{sum(min(GAPS, key=lambda c: row[kind + c]) not in none_of for row in rows)} ({words})"
        for kind, words in KINDS.items()
    ]
    return f"{' and '.join(counts)} of {len(rows)} sets"


def _printed(not_one_of: Iterable[str]) -> int:
    """On how many sets of the paper's table the best gap is none of these."""
    best = [min(GAPS, key=paper_row(LABEL, name).__getitem__) for name in row_names(LABEL)]
    return sum(gap not in not_one_of for gap in best)


def _sets(result: Record, gaps: Iterable[str], than: Iterable[str], sign: int) -> int:
    """On how many sets some gap is better than all of `than`, by two standard errors.

    sign: -1 for that; 1 for whether every gap is worse than all of `than`.
    """
    gaps, than = list(gaps), list(than)
    clear = [
        [_clear(result, name, gap, than, sign) for gap in gaps] for name in result["rows"]
    ]  # fmt: skip
    return sum(any(each) if sign < 0 else all(each) for each in clear)


def _clear(result: Record, name: str, gap: str, than: list[str], sign: int) -> bool:
    """Whether one gap is. Errors are those of the differences to 0, and to 10^15 for large gaps."""
    row, (to_none, to_large) = result["rows"][name], result["errors"][name][gap]
    return all(
        sign * (row[f"best_{gap}"] - row[f"best_{other}"])
        > 2 * (to_none if other == "0" else to_large)
        for other in than
    )
