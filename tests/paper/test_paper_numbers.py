"""Numbers of the paper, by hand, and ours beside them."""

from lloydformer.paper.paper_numbers import (
    beside,
    numbers_table,
    paper_numbers,
    paper_row,
    rows_beside_paper,
)


def test_the_papers_numbers_by_hand():
    assert paper_numbers("mix-res")["rows"]["normal"] == [6.343, 5.2636, 5.0052]
    (table,) = numbers_table("mix-res")
    assert table.columns == ["", "initial", "lloyd", "transformer"]
    assert table.rows[0] == ["normal", "6.343", "5.2636", "5.0052"]
    assert numbers_table("comp-alg") == []


def test_our_numbers_are_followed_by_the_papers():
    assert beside(6.34, 6.343, 3) == "6.340 (6.343)"
    rows = {name: {"ours": 1.0} for name in paper_numbers("mix-res")["rows"]}
    first, *others = rows_beside_paper("mix-res", rows, {"lloyd": "ours"}, 2)
    assert first == ["normal", "1.00 (5.26)"]
    assert len(others) == 4
    assert paper_row("mix-res", "normal")["lloyd"] == 5.2636
