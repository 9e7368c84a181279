"""Which rank holds which rows: every row once, cut at leaves, and few rows move."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.engines.ranks.transport import Placement, place_on_ranks

LEAF = 8


def rows_of(place: Placement, starts) -> list[int]:
    return [
        row
        for owner, first, last in place.range.sources
        for row in range(starts[owner] + first, starts[owner] + last)
    ]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6).filter(sum), st.booleans())
def test_every_row_is_in_one_part_and_parts_end_at_leaves(lengths, single):
    starts, n_rows = np.cumsum([0, *lengths]), sum(lengths)
    found = place_on_ranks(lengths, LEAF, single=single)
    assert [row for place in found for row in rows_of(place, starts)] == list(range(n_rows))
    for place in found:
        assert place.range.start % LEAF == 0
        assert place.range.stop % LEAF == 0 or place.range.stop == n_rows
        assert place.rank in {owner for owner, _, _ in place.range.sources} or len(found) > 1
    if single:
        assert len(found) == 1


@given(st.lists(st.integers(2 * LEAF, 100), min_size=2, max_size=6))
def test_at_most_half_a_leaf_moves_over_a_boundary_and_other_rows_stay_views(lengths):
    found = place_on_ranks(lengths, LEAF, single=False)
    moved = [
        (owner, place.rank, last - first)
        for place in found
        for owner, first, last in place.range.sources
        if owner != place.rank
    ]
    assert all(abs(owner - rank) == 1 and count <= LEAF // 2 for owner, rank, count in moved)
    for place in found:  # rows are copied only in leaves with rows of others
        if len(place.range.sources) > 1:
            assert place.range.stop - place.range.start <= LEAF


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([16, 16], [(0, 16, 0), (16, 32, 1)]),
        ([20, 12], [(0, 16, 0), (16, 24, 0), (24, 32, 1)]),  # half of a leaf goes to rank 0
        ([19, 13], [(0, 16, 0), (16, 24, 1), (24, 32, 1)]),
        ([0, 16, 0], [(0, 16, 1)]),
        ([3, 3, 3], [(0, 9, 0)]),
    ],
)
def test_by_hand(lengths, expected):
    found = place_on_ranks(lengths, LEAF, single=False)
    assert [(place.range.start, place.range.stop, place.rank) for place in found] == expected
