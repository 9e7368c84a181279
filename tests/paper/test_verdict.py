"""Three kinds of verdicts, counted apart, and four answers."""

from dataclasses import replace

import pytest

from lloydformer.paper.verdict import (
    Answer,
    Kind,
    Tolerance,
    Verdict,
    beyond,
    judge,
    judge_less,
    number,
    worst_of,
)

HELD = Verdict(Kind.CLAIM, "it is", Answer.HOLDS, "It is so.", "sec:x")
WITHIN = number("a", "tab:x", 1.0, 1.04, Tolerance(0.05, "Printed to one digit."))
FOUND = Verdict(Kind.BEYOND, "no", None, about="And elsewhere?")


@pytest.mark.parametrize(
    ("verdict", "without"),
    [
        (HELD, "quote"),
        (HELD, "label"),
        (HELD, "answer"),
        (WITHIN, "about"),
        (WITHIN, "label"),
        (WITHIN, "paper"),
        (WITHIN, "tolerance"),
        (WITHIN, "note"),
        (WITHIN, "what"),
        (FOUND, "about"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)
def test_a_verdict_without_what_its_kind_needs_is_refused(verdict, without):
    empty = "" if isinstance(getattr(verdict, without), str) and without != "answer" else None
    with pytest.raises(ValueError, match=rf"a verdict of kind {verdict.kind} needs {without}"):
        replace(verdict, **{without: empty})


@pytest.mark.parametrize(
    ("verdict", "more"),
    [
        (HELD, {"about": "x"}),
        (HELD, {"paper": 1.0}),
        (WITHIN, {"quote": "It is so."}),
        (FOUND, {"quote": "It is so."}),
        (FOUND, {"label": "sec:x"}),
        (FOUND, {"tolerance": 0.1}),
        (FOUND, {"paper": 1.0}),
        (FOUND, {"what": "means"}),
        (HELD, {"what": "means"}),
    ],
)
def test_a_verdict_with_what_belongs_to_another_kind_is_refused(verdict, more):
    with pytest.raises(
        ValueError, match=f"a verdict of kind {verdict.kind} has no {next(iter(more))}"
    ):
        replace(verdict, **more)


@pytest.mark.parametrize("answer", [Answer.HOLDS, Answer.FAILS, Answer.OPEN])
def test_what_the_paper_does_not_say_cannot_hold_or_fail(answer):
    with pytest.raises(ValueError, match="beyond the paper"):
        replace(FOUND, answer=answer)
    assert replace(FOUND, answer=Answer.UNDECIDED).answer is Answer.UNDECIDED


def test_a_number_is_within_its_tolerance_outside_or_too_uncertain():
    assert WITHIN.answer is Answer.HOLDS
    assert WITHIN.difference == pytest.approx(0.04)
    assert answer(1.05) is Answer.HOLDS  # the last digit
    assert answer(1.06) is answer(0.94) is Answer.FAILS
    assert answer(1.06, error=0.01) is Answer.UNDECIDED
    assert answer(1.08, error=0.01) is Answer.FAILS
    assert answer(9.0, is_open=True) is Answer.OPEN
    assert answer(1.0, is_open=True) is Answer.HOLDS


def answer(here: float, **more) -> Answer | None:
    """The answer to a number that is 1 in the paper."""
    return number("a", "tab:x", 1.0, here, Tolerance(0.05, "why"), **more).answer


def test_answers_from_trials():
    assert judge(True) is Answer.HOLDS
    assert judge(False) is Answer.FAILS
    assert judge(False, enough=False) is Answer.UNDECIDED
    assert judge(True, enough=False) is Answer.HOLDS
    assert [judge_less(x, 0.1) for x in (-0.3, -0.1, 0.1, 0.3)] == [
        Answer.HOLDS,
        Answer.UNDECIDED,
        Answer.UNDECIDED,
        Answer.FAILS,
    ]
    assert judge_less(0.0, 0.0) is Answer.UNDECIDED


def test_a_sentence_is_as_good_as_its_worst_part():
    order = (Answer.HOLDS, Answer.UNDECIDED, Answer.OPEN, Answer.FAILS)
    for place, worst in enumerate(order):
        for other in order[: place + 1]:
            assert worst_of(worst, other) is worst_of(other, worst) is worst


def test_as_json():
    assert WITHIN.as_dict() == {
        "kind": "number",
        "here": 1.04,
        "answer": "holds",
        "quote": "",
        "label": "tab:x",
        "about": "a",
        "paper": 1.0,
        "tolerance": 0.05,
        "note": "Printed to one digit.",
        "what": "numbers",
        "difference": pytest.approx(0.04),
    }
    assert FOUND.as_dict()["answer"] is None
    assert HELD.as_dict()["difference"] is None
    assert {kind.value for kind in Kind} == {"claim", "number", "beyond"}
    assert [answer.value for answer in Answer] == [
        "holds",
        "does not hold",
        "depends on what the text leaves open",
        "undecided by these trials",
    ]


def test_a_finding_has_its_question_and_note_from_labels_toml():
    found = beyond("openml-trf.objective", "9 % on average")
    assert (found.kind, found.here, found.answer) == (Kind.BEYOND, "9 % on average", None)
    assert found.about == "How much higher is the objective itself than Lloyd's?"
    assert found.note == "A percentage of a logarithm changes with the unit of the data."
    other = beyond("openml-trf.objective", "unknown", "Too few trials.", undecided=True)
    assert (other.answer, other.note) == (Answer.UNDECIDED, "Too few trials.")
