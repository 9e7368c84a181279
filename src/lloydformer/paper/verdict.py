"""Verdicts: on a sentence of the paper, on a number of it, or a finding beyond the paper."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import ndarray


class Kind(StrEnum):
    """The subject of a verdict. The kinds are counted apart.

    CLAIM: a sentence that the paper makes. NUMBER: a number of its tables or of its text. BEYOND:
    a question that the paper does not ask.
    """

    CLAIM = "claim"
    NUMBER = "number"
    BEYOND = "beyond"


class Answer(StrEnum):
    """The answer to a claim or a number.

    OPEN: true or false by what the text does not say (data, start, setting). UNDECIDED: the
    trials made here are too few, or the differences too small.
    """

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "depends on what the text leaves open"
    UNDECIDED = "undecided by these trials"


@dataclass(frozen=True)
class Tolerance:
    """The largest difference to the paper's numbers, its reason, and what numbers they are."""

    within: float
    why: str
    what: str = "numbers"

    def excess(self, difference: float) -> float:
        """Return by how much a difference is outside; 0 or less if it is within."""
        # a number that is rounded to the last digit of its tolerance is within it
        return abs(difference) - self.within * (1 + 1e-9)


# The fields that a kind needs, and those that every kind may have; others belong to other kinds.
_NEEDED: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLAIM: ("quote", "label", "answer"),
    Kind.NUMBER: ("about", "label", "answer", "paper", "tolerance", "note", "what"),
    Kind.BEYOND: ("about",),
}
_COMMON = ("kind", "here", "answer", "note")


@dataclass(frozen=True)
class Verdict:
    """One line of `lloydformer reproduce`.

    Raises ValueError if a field is missing that the kind needs, or set that belongs to another.

    Attributes
    ----------
    kind : Kind
        The subject.
    here : float or str
        What was measured, a number or words.
    answer : Answer or None
        None for a finding beyond the paper, which says nothing about the paper.
    quote, label : str
        The sentence of the paper word for word, with its symbols as plain text, and the LaTeX
        label of its place. Numbers have a label as well.
    about : str
        The name of a number, or the question beyond the paper.
    paper, tolerance : float or None
        The paper's number, and how far ours may be from it.
    note : str
        An explanation; for a number, the reason of its tolerance.
    what : str
        The plural word for such numbers, for example "means".
    """

    kind: Kind
    here: float | str
    answer: Answer | None
    quote: str = ""
    label: str = ""
    about: str = ""
    paper: float | None = None
    tolerance: float | None = None
    note: str = ""
    what: str = ""

    def __post_init__(self) -> None:
        # checked here, since an empty cell of a table would not be noticed
        given = [name for name, value in asdict(self).items() if value not in ("", None)]
        needed = _NEEDED[self.kind]
        if missing := [name for name in needed if name not in given]:
            raise ValueError(f"a verdict of kind {self.kind} needs {', '.join(missing)}")
        if foreign := [name for name in given if name not in (*needed, *_COMMON)]:
            raise ValueError(f"a verdict of kind {self.kind} has no {', '.join(foreign)}")
        if self.kind is Kind.BEYOND and self.answer not in (None, Answer.UNDECIDED):
            raise ValueError(f"what is beyond the paper cannot be answered by {self.answer!r}")

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's; None if this is not a number."""
        if self.paper is None or isinstance(self.here, str):
            return None
        return self.here - self.paper

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the difference as JSON values."""
        return {**asdict(self), "difference": self.difference}


# cached: every claim asks for its sentence
@cache
def read_label_texts() -> dict[str, Any]:
    """Return labels.toml, by label: cites, title, about, claims, tolerances and findings."""
    import tomllib  # not above: the command line imports this file for its help

    return tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))


def _find_text(kind: str, name: str) -> dict[str, Any]:
    """Return an entry of labels.toml; `name`: that of the label and its own, LABEL.NAME."""
    label, key = name.split(".")
    found: dict[str, Any] = read_label_texts()[label][kind][key]
    return found


def claim(name: str, here: str, answer: Answer, note: str = "") -> Verdict:
    """Return a verdict on a sentence of the paper, LABEL.NAME of a claim in labels.toml."""
    said = _find_text("claims", name)
    note = note or said.get("note", "")
    return Verdict(Kind.CLAIM, here, answer, said["quote"], said["label"], note=note)


def find_tolerance(name: str) -> Tolerance:
    """Return a tolerance of labels.toml, by LABEL.NAME."""
    return Tolerance(**_find_text("tolerances", name))


def number(
    about: str,
    label: str,
    paper: float,
    here: float,
    tolerance: Tolerance,
    error: float = 0.0,
    is_open: bool = False,
) -> Verdict:
    """Return a verdict on a number of the paper, which holds if ours is within the tolerance.

    Outside of it by less than two standard errors (`error`, of ours) is UNDECIDED, and outside for
    a reason that the text leaves open (`is_open`) is OPEN.
    """
    outside = tolerance.excess(here - paper)
    answer = judge(outside <= 0, enough=outside > 2 * error)
    if outside > 0 and is_open:
        answer = Answer.OPEN
    return Verdict(
        kind=Kind.NUMBER,
        here=here,
        answer=answer,
        label=label,
        about=about,
        paper=paper,
        tolerance=tolerance.within,
        note=tolerance.why,
        what=tolerance.what,
    )


def beyond(name: str, here: str, note: str = "", undecided: bool = False) -> Verdict:
    """Return the answer to a question beyond the paper, LABEL.NAME of a finding in labels.toml."""
    asked = _find_text("findings", name)
    answer, note = Answer.UNDECIDED if undecided else None, note or asked.get("note", "")
    return Verdict(Kind.BEYOND, here, answer, about=asked["question"], note=note)


def judge(holds: bool, enough: bool = True) -> Answer:
    """Return HOLDS or FAILS; UNDECIDED if it fails and the trials are not enough to refute it."""
    # few trials can show what a sentence says, but not refute it
    if holds:
        return Answer.HOLDS
    return Answer.FAILS if enough else Answer.UNDECIDED


def judge_less(difference: float, error: float) -> Answer:
    """Return whether a mean difference is below 0, by more than two of its standard errors."""
    # two standard errors: one difference in twenty is larger by chance
    if abs(difference) <= 2 * error:
        return Answer.UNDECIDED
    return judge(difference < 0)


def standard_error(differences: "ndarray") -> float:
    """Return the standard error of the mean of these differences; 0 for a single one."""
    m = len(differences)
    return round(float(differences.std(ddof=min(1, m - 1)) / m**0.5), 6)


def worst_of(*answers: Answer) -> Answer:
    """Return the answer to a sentence of several parts: that of the worst part."""
    # from best to worst: trials may still decide what is UNDECIDED, but not what is OPEN
    severity = (Answer.HOLDS, Answer.UNDECIDED, Answer.OPEN, Answer.FAILS)
    return max(answers, key=severity.index)
