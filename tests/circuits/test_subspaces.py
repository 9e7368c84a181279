"""Named subspaces: their spans, and reading and writing by name."""

import pytest
import torch

from lloydformer.circuits.subspaces import AFFINITY, ASSIGNMENT, HALF, POSITION, SQUARED_NORM, Space

SPACE = Space(((POSITION, 2), (SQUARED_NORM, 1), (HALF, 1), (ASSIGNMENT, 3)))
TOKENS = torch.arange(14.0).reshape(2, 7)


def test_a_space_is_the_sum_of_its_subspaces():
    assert SPACE.dim == 7
    assert SPACE.subspaces == (POSITION, SQUARED_NORM, HALF, ASSIGNMENT)
    assert [SPACE.size(s) for s in SPACE.subspaces] == [2, 1, 1, 3]


def test_spans_are_consecutive():
    assert SPACE.span(POSITION) == slice(0, 2)
    assert SPACE.span(HALF) == slice(3, 4)
    assert SPACE.span(ASSIGNMENT) == slice(4, 7)


def test_an_unknown_subspace_is_named_in_the_error():
    with pytest.raises(ValueError, match=r"AFFINITY is not among .*POSITION"):
        SPACE.span(AFFINITY)


def test_read():
    assert SPACE.read(TOKENS, ASSIGNMENT).tolist() == [[4, 5, 6], [11, 12, 13]]


def test_write_replaces_one_part_of_a_copy():
    before = TOKENS.clone()
    written = SPACE.write(TOKENS, SQUARED_NORM, torch.tensor([[-1.0], [-2.0]]))
    assert written.tolist() == [[0, 1, -1, 3, 4, 5, 6], [7, 8, -2, 10, 11, 12, 13]]
    assert torch.equal(TOKENS, before)


def test_assemble_is_the_inverse_of_read():
    parts = {s: SPACE.read(TOKENS, s) for s in reversed(SPACE.subspaces)}
    assert torch.equal(SPACE.assemble(parts), TOKENS)


def test_repr_of_a_subspace_is_its_constant():
    assert repr(SQUARED_NORM) == "SQUARED_NORM"
