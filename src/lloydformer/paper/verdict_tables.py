"""Verdicts as text: one table for each kind, and a one-line summary that counts the kinds apart."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from lloydformer.paper.artefact import TextTable
from lloydformer.paper.verdict import Answer, Kind, Verdict

# Chosen by hand, so that a row and a summary stay readable: numbers that are listed at most (more
# are counted), and tolerances that are named at most.
_LISTED_NUMBERS, _NAMED_TOLERANCES = 5, 3

# The answers that a summary names, in words for one and for several.
_CLAIM_WORDS: Mapping[Answer, tuple[str, str]] = {
    Answer.FAILS: ("does not hold", "do not hold"),
    Answer.OPEN: (str(Answer.OPEN), "depend on what the text leaves open"),
    Answer.UNDECIDED: ("is undecided by these trials", "are undecided by these trials"),
}
_NUMBER_WORDS = {**_CLAIM_WORDS, Answer.FAILS: ("is not", "are not")}


def summarise(verdicts: Sequence[Verdict]) -> str:
    """Return one line, such as `5 of 6 claims hold (1 does not hold); 9 of 9 means within 0.1`.

    Numbers are counted for each tolerance, or all together if there are many tolerances.
    """
    claims, numbers, findings = _split_by_kind(verdicts)
    parts = []
    if {Answer.HOLDS, Answer.FAILS} & {verdict.answer for verdict in claims}:
        others = _in_brackets(_count_answers(claims, _CLAIM_WORDS))
        parts.append(f"{_count_holding(claims)} of {len(claims)} claims hold{others}")
    elif claims:  # nothing is decided, and '0 of 3 claims hold' would read like a failure
        plural = "s" if len(claims) > 1 else ""
        parts.append(f"{len(claims)} claim{plural}: {_count_answers(claims, _CLAIM_WORDS)}")
    groups = _group_by(numbers, lambda verdict: (verdict.what, verdict.tolerance))
    if len(groups) > _NAMED_TOLERANCES:
        others = _in_brackets(_count_answers(numbers, _NUMBER_WORDS))
        held = f"{_count_holding(numbers)} of {len(numbers)} numbers within their tolerances"
        parts.append(held + others)
    elif groups:
        parts.append(", ".join(_count_within(group, f" {group[0].what}") for group in groups))
    if findings:
        undecided = sum(verdict.answer is Answer.UNDECIDED for verdict in findings)
        found = len(findings) - undecided
        words = [f"{found} finding{'s' if found > 1 else ''}"] if found else []
        words += [f"{undecided} {Answer.UNDECIDED}"] if undecided else []
        parts.append(f"beyond the paper: {', '.join(words)}")
    return "; ".join(parts)


def verdict_tables(verdicts: Sequence[Verdict], loud: bool = False) -> list[TextTable]:
    """Return a table for each kind that occurs; `loud` marks failures in bold, as Markdown.

    Numbers with the same label, meaning, tolerance and reason share a row.
    """
    claims, numbers, findings = _split_by_kind(verdicts)
    groups = _group_by(numbers, lambda v: (v.label, v.what, v.tolerance, v.note))
    tables = [
        TextTable(
            "Claims of the paper",
            ("the paper says", "here", "answer", "note"),
            [
                [
                    f"“{one.quote}” ({one.label})",
                    _here(one),
                    f"**{one.answer}**" if loud and one.answer is Answer.FAILS else f"{one.answer}",
                    one.note,
                ]
                for one in claims
            ],
        ),
        TextTable(
            "Numbers of the paper (here, and in brackets the paper's)",
            ("numbers", "answer", "largest difference", "why this tolerance"),
            [_number_row(group, loud) for group in groups],
        ),
        TextTable(
            "Beyond the paper",
            ("we ask", "here", "note"),
            [
                [one.about, f"{one.answer}: {_here(one)}" if one.answer else _here(one), one.note]
                for one in findings
            ],
        ),
    ]
    return [table for table in tables if table.rows]


def _number_row(group: Sequence[Verdict], loud: bool) -> list[str]:
    """Return the cells: all numbers if they are few, otherwise their count and the few failures."""

    def cells(some: Sequence[Verdict]) -> str:
        return ", ".join(f"{one.about} {_here(one)} ({one.paper:.4g})" for one in some)

    first = group[0]
    if len(group) <= _LISTED_NUMBERS:
        listed = f"{first.label}: {cells(group)}"
    else:
        failed = [verdict for verdict in group if verdict.answer is Answer.FAILS]
        named = f"; not within: {cells(failed)}" if 0 < len(failed) <= _LISTED_NUMBERS else ""
        listed = f"{len(group)} {first.what} of {first.label}{named}"
    largest = max(group, key=lambda verdict: abs(verdict.difference or 0.0))
    difference = f"{largest.difference:+.3g} ({largest.about})"
    return [listed, _count_within(group, loud=loud), difference, first.note]


def _split_by_kind(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    return [[verdict for verdict in verdicts if verdict.kind is kind] for kind in Kind]


def _group_by(verdicts: Sequence[Verdict], key: Callable[[Verdict], object]) -> list[list[Verdict]]:
    """Return verdicts with the same key as lists, in the order of their first."""
    groups: dict[object, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(key(verdict), []).append(verdict)
    return list(groups.values())


def _count_holding(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.answer is Answer.HOLDS for verdict in verdicts)


def _count_within(group: Sequence[Verdict], what: str = "", loud: bool = False) -> str:
    others = _in_brackets(_count_answers(group, _NUMBER_WORDS, loud))
    return f"{_count_holding(group)} of {len(group)}{what} within {group[0].tolerance:g}{others}"


def _count_answers(
    verdicts: Sequence[Verdict], words: Mapping[Answer, tuple[str, str]], loud: bool = False
) -> str:
    """Return how many verdicts have each of the answers in `words`; empty if none has."""
    counts = Counter(verdict.answer for verdict in verdicts)
    parts = []
    for answer, (one, several) in words.items():
        if count := counts[answer]:
            part = f"{count} {several if count > 1 else one}"
            parts.append(f"**{part}**" if loud and answer is Answer.FAILS else part)
    return ", ".join(parts)


def _in_brackets(words: str) -> str:
    return f" ({words})" if words else ""


def _here(verdict: Verdict) -> str:
    return verdict.here if isinstance(verdict.here, str) else f"{verdict.here:.4g}"
