"""Verdicts as text: one table for each kind, and a summary that counts the kinds apart."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from lloydformer.paper.artefact import TextTable
from lloydformer.paper.verdict import Answer, Kind, Verdict

_FEW = 5
"""Up to this many numbers are listed, more are counted."""
_FEW_TOLERANCES = 3
"""Up to so many are named in a summary."""
_OTHERS: Mapping[Answer, tuple[str, str]] = {
    Answer.FAILS: ("does not hold", "do not hold"),
    Answer.OPEN: (str(Answer.OPEN), "depend on what the text leaves open"),
    Answer.UNDECIDED: ("is undecided by these trials", "are undecided by these trials"),
}
"""Words for one and for several."""
_NUMBERS = {**_OTHERS, Answer.FAILS: ("is not", "are not")}


def summary(verdicts: Sequence[Verdict]) -> str:
    """One line, such as `5 of 6 claims hold (1 does not hold); beyond the paper: 3 findings`."""
    parts = (_claims_summary, _numbers_summary, _beyond_summary)
    pairs = zip(parts, _by_kind(verdicts), strict=True)
    return "; ".join(part(found) for part, found in pairs if found)


def verdict_tables(verdicts: Sequence[Verdict], loud: bool = False) -> list[TextTable]:
    """A table for each kind that there is; `loud` marks what fails in bold, as Markdown."""
    claims, numbers, found = _by_kind(verdicts)
    tables = [
        TextTable("Claims of the paper", ("the paper says", "here", "answer", "note"),
                  [_claim_row(verdict, loud) for verdict in claims]),
        TextTable("Numbers of the paper (here, and in brackets the paper's)",
                  ("numbers", "answer", "largest difference", "why this tolerance"),
                  [_number_row(group, loud) for group in _grouped(numbers, _reason)]),
        TextTable("Beyond the paper", ("we ask", "here", "note"),
                  [_beyond_row(verdict) for verdict in found]),
    ]  # fmt: skip
    return [table for table in tables if table.rows]


def _by_kind(verdicts: Sequence[Verdict]) -> list[list[Verdict]]:
    return [[verdict for verdict in verdicts if verdict.kind is kind] for kind in Kind]


def _claims_summary(claims: Sequence[Verdict]) -> str:
    """How many hold; or, if none holds and none fails, how many have each answer."""
    if not {Answer.HOLDS, Answer.FAILS} & {verdict.answer for verdict in claims}:
        return f"{len(claims)} claim{'s' if len(claims) > 1 else ''}: {_counts(claims, _OTHERS)}"
    return f"{_held(claims)} of {len(claims)} claims hold{_others(claims, _OTHERS)}"


def _numbers_summary(numbers: Sequence[Verdict]) -> str:
    """The counts for each tolerance, or of all if there are many tolerances."""
    groups = _grouped(numbers, lambda verdict: (verdict.what, verdict.tolerance))
    if len(groups) > _FEW_TOLERANCES:
        others = _others(numbers, _NUMBERS)
        return f"{_held(numbers)} of {len(numbers)} numbers within their tolerances{others}"
    return ", ".join(_within(group, group[0].what) for group in groups)


def _beyond_summary(found: Sequence[Verdict]) -> str:
    undecided = sum(verdict.answer is Answer.UNDECIDED for verdict in found)
    findings = len(found) - undecided
    words = [f"{findings} finding{'s' if findings > 1 else ''}"] if findings else []
    words += [f"{undecided} {Answer.UNDECIDED}"] if undecided else []
    return f"beyond the paper: {', '.join(words)}"


def _within(group: Sequence[Verdict], what: str = "", loud: bool = False) -> str:
    others = _others(group, _NUMBERS, loud)
    words = f"{len(group)} {what}".strip()
    return f"{_held(group)} of {words} within {group[0].tolerance:g}{others}"


def _held(verdicts: Sequence[Verdict]) -> int:
    return sum(verdict.answer is Answer.HOLDS for verdict in verdicts)


def _others(
    verdicts: Sequence[Verdict], words: Mapping[Answer, tuple[str, str]], loud: bool = False
) -> str:
    """How many have each of the other answers, in brackets; empty if all hold."""
    counts = _counts(verdicts, words, loud)
    return f" ({counts})" if counts else ""


def _counts(
    verdicts: Sequence[Verdict], words: Mapping[Answer, tuple[str, str]], loud: bool = False
) -> str:
    """How many have each of these answers."""
    counts = Counter(verdict.answer for verdict in verdicts)
    found = {answer: counts[answer] for answer in words if counts[answer]}
    parts = [
        _bold(f"{count} {words[answer][count > 1]}", loud and answer is Answer.FAILS)
        for answer, count in found.items()
    ]
    return ", ".join(parts)


def _claim_row(verdict: Verdict, loud: bool) -> list[str]:
    answer = _bold(str(verdict.answer), loud and verdict.answer is Answer.FAILS)
    return [f"“{verdict.quote}” ({verdict.label})", _here(verdict), answer, verdict.note]


def _beyond_row(verdict: Verdict) -> list[str]:
    undecided = f"{verdict.answer}: " if verdict.answer is Answer.UNDECIDED else ""
    return [verdict.about, f"{undecided}{_here(verdict)}", verdict.note]


def _reason(verdict: Verdict) -> tuple[object, ...]:
    """The numbers of a row have one label, one meaning, and one tolerance for one reason."""
    return verdict.label, verdict.what, verdict.tolerance, verdict.note


def _grouped(verdicts: Sequence[Verdict], key: Callable[[Verdict], object]) -> list[list[Verdict]]:
    """Verdicts with the same key, in the order of their first."""
    groups: dict[object, list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(key(verdict), []).append(verdict)
    return list(groups.values())


def _number_row(group: Sequence[Verdict], loud: bool) -> list[str]:
    largest = max(group, key=lambda verdict: abs(verdict.difference or 0.0))
    difference = f"{largest.difference:+.3g} ({largest.about})"
    return [_listed(group), _within(group, loud=loud), difference, group[0].note]


def _listed(group: Sequence[Verdict]) -> str:
    """All numbers if they are few; otherwise their count, and those that fail if they are few."""
    if len(group) <= _FEW:
        return f"{group[0].label}: {_cells(group)}"
    failed = [verdict for verdict in group if verdict.answer is Answer.FAILS]
    named = f"; not within: {_cells(failed)}" if 0 < len(failed) <= _FEW else ""
    return f"{len(group)} {group[0].what} of {group[0].label}{named}"


def _cells(group: Sequence[Verdict]) -> str:
    return ", ".join(f"{one.about} {_here(one)} ({one.paper:.4g})" for one in group)


def _here(verdict: Verdict) -> str:
    return verdict.here if isinstance(verdict.here, str) else f"{verdict.here:.4g}"


def _bold(words: str, loud: bool) -> str:
    return f"**{words}**" if loud else words
