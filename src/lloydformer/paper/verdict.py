"""One verdict: on a sentence of the paper, on a number of it, or a finding beyond the paper."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What a verdict is about. The kinds are counted apart.

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
    """How far numbers may be from the paper's, why so far, and what numbers they are."""

    within: float
    why: str
    what: str = "numbers"


@dataclass(frozen=True)
class Verdict:
    """One line of `lloydformer reproduce`.

    here: what was measured, a number or words. answer: None for a finding beyond the paper, which
    says nothing about the paper. quote, label: the sentence of the paper word for word, with its
    symbols as plain text, and the LaTeX label of where it stands; numbers have a label, too. about:
    which number, or the question beyond the paper. paper, tolerance: the paper's number, and how
    far ours may be from it. note: an explanation; for a number, why it has this tolerance. what:
    the plural word for such numbers, such as "means".

    Raises ValueError if a field is missing that the kind needs, or set that belongs to another.
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
        given = {name for name, value in asdict(self).items() if value not in ("", None)}
        if missing := [name for name in _NEEDED[self.kind] if name not in given]:
            raise ValueError(f"a verdict of kind {self.kind} needs {', '.join(missing)}")
        if foreign := [name for name in _FOREIGN[self.kind] if name in given]:
            raise ValueError(f"a verdict of kind {self.kind} has no {', '.join(foreign)}")
        if self.kind is Kind.BEYOND and self.answer not in (None, Answer.UNDECIDED):
            raise ValueError(f"what is beyond the paper cannot be answered by {self.answer!r}")

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's; None if this is not a number."""
        if self.paper is None or isinstance(self.here, str):
            return None
        return self.here - self.paper

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "difference": self.difference}


_NEEDED: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLAIM: ("quote", "label", "answer"),
    Kind.NUMBER: ("about", "label", "answer", "paper", "tolerance", "note", "what"),
    Kind.BEYOND: ("about",),
}
_FOREIGN: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLAIM: ("about", "paper", "tolerance", "what"),
    Kind.NUMBER: ("quote",),
    Kind.BEYOND: ("quote", "label", "paper", "tolerance", "what"),
}


def claim(quote: str, label: str, here: str, answer: Answer, note: str = "") -> Verdict:
    """A verdict on a sentence of the paper, which stands at this label."""
    return Verdict(Kind.CLAIM, here, answer, quote, label, note=note)


def number(
    about: str, label: str, paper: float, here: float, tolerance: Tolerance,
    error: float = 0.0, is_open: bool = False,
) -> Verdict:  # fmt: skip
    """A verdict on a number of the paper: whether ours is within the tolerance.

    Outside of it by less than two standard errors (`error`, of ours) is undecided, and outside for
    a reason that the text leaves open (`is_open`) is OPEN.
    """
    outside = abs(here - paper) - tolerance.within * (1 + 1e-9)
    answer = judged(outside <= 0, enough=outside > 2 * error)
    if outside > 0 and is_open:
        answer = Answer.OPEN
    return Verdict(Kind.NUMBER, here, answer, "", label, about, paper, tolerance.within,
                   tolerance.why, tolerance.what)  # fmt: skip


def beyond(question: str, here: str, note: str = "", undecided: bool = False) -> Verdict:
    """A finding that the paper does not speak of."""
    answer = Answer.UNDECIDED if undecided else None
    return Verdict(Kind.BEYOND, here, answer, about=question, note=note)


def judged(holds: bool, enough: bool = True) -> Answer:
    """HOLDS or FAILS; UNDECIDED if it does not hold and the trials are not enough to refute it."""
    if holds:
        return Answer.HOLDS
    return Answer.FAILS if enough else Answer.UNDECIDED


def less(difference: float, error: float) -> Answer:
    """Whether a mean difference is below 0, by more than two of its standard errors."""
    if abs(difference) <= 2 * error:
        return Answer.UNDECIDED
    return judged(difference < 0)


def together(*answers: Answer) -> Answer:
    """The answer to a sentence of several parts: that of the worst."""
    return max(answers, key=_SEVERITY.index)


_SEVERITY = (Answer.HOLDS, Answer.UNDECIDED, Answer.OPEN, Answer.FAILS)
