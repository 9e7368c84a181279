"""Three kinds of verdicts, counted apart, and four answers."""

from dataclasses import replace

import pytest

from lloydformer.paper.verdict import (
    Answer,
    Kind,
    Tolerance,
    Verdict,
    beyond,
    claim,
    judged,
    less,
    number,
    together,
)
from lloydformer.paper.verdict_tables import summary, verdict_tables

HELD = claim("It is so.", "sec:x", "it is", Answer.HOLDS)
WITHIN = number("a", "tab:x", 1.0, 1.04, Tolerance(0.05, "Printed to one digit."))
FOUND = beyond("And elsewhere?", "no")


def answers(*found: Answer) -> list[Verdict]:
    return [replace(HELD, answer=answer) for answer in found]


@pytest.mark.parametrize(
    ("verdict", "without"),
    [
        (HELD, "quote"), (HELD, "label"), (HELD, "answer"),
        (WITHIN, "about"), (WITHIN, "label"), (WITHIN, "paper"), (WITHIN, "tolerance"),
        (WITHIN, "note"), (WITHIN, "what"), (FOUND, "about"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.kind,
)  # fmt: skip
def test_a_verdict_without_what_its_kind_needs_is_refused(verdict, without):
    empty = "" if isinstance(getattr(verdict, without), str) and without != "answer" else None
    with pytest.raises(ValueError, match=rf"a verdict of kind {verdict.kind} needs {without}"):
        replace(verdict, **{without: empty})


@pytest.mark.parametrize(
    ("verdict", "more"),
    [
        (HELD, {"about": "x"}), (HELD, {"paper": 1.0}), (WITHIN, {"quote": "It is so."}),
        (FOUND, {"quote": "It is so."}), (FOUND, {"label": "sec:x"}),
        (FOUND, {"tolerance": 0.1}), (FOUND, {"paper": 1.0}), (FOUND, {"what": "means"}),
        (HELD, {"what": "means"}),
    ],
)  # fmt: skip
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
    assert judged(True) is Answer.HOLDS
    assert judged(False) is Answer.FAILS
    assert judged(False, enough=False) is Answer.UNDECIDED
    assert judged(True, enough=False) is Answer.HOLDS
    assert [less(x, 0.1) for x in (-0.3, -0.1, 0.1, 0.3)] == [
        Answer.HOLDS, Answer.UNDECIDED, Answer.UNDECIDED, Answer.FAILS,
    ]  # fmt: skip
    assert less(0.0, 0.0) is Answer.UNDECIDED


def test_a_sentence_is_as_good_as_its_worst_part():
    order = (Answer.HOLDS, Answer.UNDECIDED, Answer.OPEN, Answer.FAILS)
    for place, worst in enumerate(order):
        for other in order[: place + 1]:
            assert together(worst, other) is together(other, worst) is worst


def test_the_kinds_are_counted_apart():
    many = [*answers(*[Answer.HOLDS] * 5, Answer.OPEN), *[WITHIN] * 15, *[FOUND] * 3]
    assert summary(many) == (
        "5 of 6 claims hold (1 depends on what the text leaves open); 15 of 15 numbers within "
        "0.05; beyond the paper: 3 findings"
    )
    assert summary([HELD]) == "1 of 1 claims hold"
    assert summary([WITHIN]) == "1 of 1 numbers within 0.05"
    assert summary([FOUND]) == "beyond the paper: 1 finding"


def test_a_finding_beyond_the_paper_changes_no_count_of_its_claims():
    assert summary([HELD, FOUND]).startswith("1 of 1 claims hold;")
    undecided = replace(FOUND, answer=Answer.UNDECIDED)
    assert summary([HELD, undecided]).endswith("; beyond the paper: 1 undecided by these trials")
    assert summary([FOUND, undecided]) == (
        "beyond the paper: 1 finding, 1 undecided by these trials"
    )


def test_every_answer_is_named_in_the_summary():
    found = answers(Answer.HOLDS, *[Answer.FAILS] * 2, Answer.OPEN, *[Answer.UNDECIDED] * 2)
    assert summary(found) == (
        "1 of 6 claims hold (2 do not hold, 1 depends on what the text leaves open, 2 are "
        "undecided by these trials)"
    )
    outside = number("b", "tab:x", 1.0, 2.0, Tolerance(0.05, "why"))
    wide = number("c", "tab:x", 10.0, 10.5, Tolerance(1.0, "why"))
    assert summary([WITHIN, outside, wide]) == (
        "1 of 2 numbers within 0.05 (1 is not), 1 of 1 numbers within 1"
    )
    means = number("m", "tab:x", 1.0, 1.0, Tolerance(0.05, "why", "means"))
    assert summary([WITHIN, means]) == ("1 of 1 numbers within 0.05, 1 of 1 means within 0.05")
    many = [number("d", "tab:x", 1.0, 1.0, Tolerance(0.1 * i, "why")) for i in range(1, 4)]
    assert summary([WITHIN, outside, *many]) == (
        "4 of 5 numbers within their tolerances (1 is not)"
    )


def test_no_claim_that_holds_is_no_failure():
    undecided = answers(Answer.UNDECIDED, Answer.UNDECIDED, Answer.OPEN)
    assert summary(undecided) == (
        "3 claims: 1 depends on what the text leaves open, 2 are undecided by these trials"
    )
    assert summary(undecided[:2]) == "2 claims: 2 are undecided by these trials"
    assert summary(undecided[:1]) == "1 claim: 1 is undecided by these trials"
    assert summary(answers(Answer.FAILS, Answer.UNDECIDED)).startswith("0 of 2 claims hold (1 does")


def test_tables_by_kind():
    outside = number("b", "tab:x", 1.0, 2.0, Tolerance(0.05, "Printed to one digit."))
    claims, numbers, found = verdict_tables([HELD, WITHIN, outside, FOUND], loud=True)
    assert claims.columns == ("the paper says", "here", "answer", "note")
    assert claims.rows == [["“It is so.” (sec:x)", "it is", "holds", ""]]
    assert numbers.rows == [
        ["tab:x: a 1.04 (1), b 2 (1)", "1 of 2 within 0.05 (**1 is not**)", "+1 (b)",
         "Printed to one digit."]
    ]  # fmt: skip
    assert found.rows == [["And elsewhere?", "no", ""]]
    assert [t.columns for t in verdict_tables([FOUND])] == [("we ask", "here", "note")]


def test_a_claim_that_fails_is_loud():
    (claims,) = verdict_tables(answers(Answer.FAILS, Answer.OPEN), loud=True)
    assert [row[2] for row in claims.rows] == [
        "**does not hold**", "depends on what the text leaves open",
    ]  # fmt: skip
    (quiet,) = verdict_tables(answers(Answer.FAILS))
    assert quiet.rows[0][2] == "does not hold"


def test_many_numbers_are_one_row_which_names_those_outside():
    many = [replace(WITHIN, about=f"n{i}") for i in range(9)]
    ((row,),) = [table.rows for table in verdict_tables(many)]
    assert row[:3] == ["9 numbers of tab:x", "9 of 9 within 0.05", "+0.04 (n0)"]
    lost = number("far", "tab:x", 1.0, 7.0, Tolerance(0.05, "Printed to one digit."))
    ((row,),) = [table.rows for table in verdict_tables([*many, lost])]
    assert row[0] == "10 numbers of tab:x; not within: far 7 (1)"


def test_numbers_with_different_reasons_are_different_rows():
    other = number("b", "tab:x", 1.0, 2.0, Tolerance(0.05, "Other data."), is_open=True)
    (table,) = verdict_tables([WITHIN, other])
    assert [row[1] for row in table.rows] == [
        "1 of 1 within 0.05", "0 of 1 within 0.05 (1 depends on what the text leaves open)",
    ]  # fmt: skip


def test_as_json():
    assert WITHIN.written() == {
        "kind": "number", "here": 1.04, "answer": "holds", "quote": "", "label": "tab:x",
        "about": "a", "paper": 1.0, "tolerance": 0.05, "note": "Printed to one digit.",
        "what": "numbers", "difference": pytest.approx(0.04),
    }  # fmt: skip
    assert FOUND.written()["answer"] is None
    assert HELD.written()["difference"] is None
    assert {kind.value for kind in Kind} == {"claim", "number", "beyond"}
    assert [answer.value for answer in Answer] == [
        "holds", "does not hold", "depends on what the text leaves open",
        "undecided by these trials",
    ]  # fmt: skip
