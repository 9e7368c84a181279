"""Verdicts as text: kinds are counted apart, and every answer is named."""

from dataclasses import replace

from lloydformer.paper.verdict import Answer, Kind, Tolerance, Verdict, number
from lloydformer.paper.verdict_tables import summarise, verdict_tables

HELD = Verdict(Kind.CLAIM, "it is", Answer.HOLDS, "It is so.", "sec:x")
WITHIN = number("a", "tab:x", 1.0, 1.04, Tolerance(0.05, "Printed to one digit."))
FOUND = Verdict(Kind.BEYOND, "no", None, about="And elsewhere?")


def answers(*found: Answer) -> list[Verdict]:
    return [replace(HELD, answer=answer) for answer in found]


def test_the_kinds_are_counted_apart():
    many = [*answers(*[Answer.HOLDS] * 5, Answer.OPEN), *[WITHIN] * 15, *[FOUND] * 3]
    assert summarise(many) == (
        "5 of 6 claims hold (1 depends on what the text leaves open); 15 of 15 numbers within "
        "0.05; beyond the paper: 3 findings"
    )
    assert summarise([HELD]) == "1 of 1 claims hold"
    assert summarise([WITHIN]) == "1 of 1 numbers within 0.05"
    assert summarise([FOUND]) == "beyond the paper: 1 finding"


def test_a_finding_beyond_the_paper_changes_no_count_of_its_claims():
    assert summarise([HELD, FOUND]).startswith("1 of 1 claims hold;")
    undecided = replace(FOUND, answer=Answer.UNDECIDED)
    assert summarise([HELD, undecided]).endswith("; beyond the paper: 1 undecided by these trials")
    assert summarise([FOUND, undecided]) == (
        "beyond the paper: 1 finding, 1 undecided by these trials"
    )


def test_every_answer_is_named_in_the_summary():
    found = answers(Answer.HOLDS, *[Answer.FAILS] * 2, Answer.OPEN, *[Answer.UNDECIDED] * 2)
    assert summarise(found) == (
        "1 of 6 claims hold (2 do not hold, 1 depends on what the text leaves open, 2 are "
        "undecided by these trials)"
    )
    outside = number("b", "tab:x", 1.0, 2.0, Tolerance(0.05, "why"))
    wide = number("c", "tab:x", 10.0, 10.5, Tolerance(1.0, "why"))
    assert summarise([WITHIN, outside, wide]) == (
        "1 of 2 numbers within 0.05 (1 is not), 1 of 1 numbers within 1"
    )
    means = number("m", "tab:x", 1.0, 1.0, Tolerance(0.05, "why", "means"))
    assert summarise([WITHIN, means]) == ("1 of 1 numbers within 0.05, 1 of 1 means within 0.05")
    many = [number("d", "tab:x", 1.0, 1.0, Tolerance(0.1 * i, "why")) for i in range(1, 4)]
    assert summarise([WITHIN, outside, *many]) == (
        "4 of 5 numbers within their tolerances (1 is not)"
    )


def test_no_claim_that_holds_is_no_failure():
    undecided = answers(Answer.UNDECIDED, Answer.UNDECIDED, Answer.OPEN)
    assert summarise(undecided) == (
        "3 claims: 1 depends on what the text leaves open, 2 are undecided by these trials"
    )
    assert summarise(undecided[:2]) == "2 claims: 2 are undecided by these trials"
    assert summarise(undecided[:1]) == "1 claim: 1 is undecided by these trials"
    assert summarise(answers(Answer.FAILS, Answer.UNDECIDED)).startswith(
        "0 of 2 claims hold (1 does"
    )


def test_tables_by_kind():
    outside = number("b", "tab:x", 1.0, 2.0, Tolerance(0.05, "Printed to one digit."))
    claims, numbers, found = verdict_tables([HELD, WITHIN, outside, FOUND], loud=True)
    assert claims.columns == ("the paper says", "here", "answer", "note")
    assert claims.rows == [["“It is so.” (sec:x)", "it is", "holds", ""]]
    assert numbers.rows == [
        [
            "tab:x: a 1.04 (1), b 2 (1)",
            "1 of 2 within 0.05 (**1 is not**)",
            "+1 (b)",
            "Printed to one digit.",
        ]
    ]
    assert found.rows == [["And elsewhere?", "no", ""]]
    assert [t.columns for t in verdict_tables([FOUND])] == [("we ask", "here", "note")]


def test_a_claim_that_fails_is_loud():
    (claims,) = verdict_tables(answers(Answer.FAILS, Answer.OPEN), loud=True)
    assert [row[2] for row in claims.rows] == [
        "**does not hold**",
        "depends on what the text leaves open",
    ]
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
        "1 of 1 within 0.05",
        "0 of 1 within 0.05 (1 depends on what the text leaves open)",
    ]
