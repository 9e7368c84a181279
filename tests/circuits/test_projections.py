"""Query, key and value matrices: worked by hand for d = 2 and k = 3, and how they print."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.circuits import recipes
from lloydformer.circuits.projections import lifting, on, separated
from lloydformer.circuits.subspaces import AFFINITY, ASSIGNMENT, HALF, POSITION, SQUARED_NORM
from lloydformer.circuits.tokens import lifted, lifted_with_affinity, plain

PLAIN = plain().space(2, 3)
LIFTED = lifted().space(2, 3)
LIFTED_PARTS = (POSITION, SQUARED_NORM, HALF)
CODES = separated(ASSIGNMENT, AFFINITY, coefficient=2.0, power=1.0)


def test_on_position_by_hand():
    """I^{:d} of eq:trf-param-vals."""
    assert on(POSITION).matrix(PLAIN).tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]


def test_minus_on_assignment_by_hand():
    """-I^{d+1:} of eq:trf-param-vals."""
    assert torch.equal((-on(ASSIGNMENT)).matrix(PLAIN).diag(), -torch.tensor([0.0, 0, 1, 1, 1]))
    assert (-on(ASSIGNMENT)).matrix(PLAIN).abs().sum() == 3


def test_separated_by_hand():
    """I^{:d} + sqrt(delta) I^{d+1:} with delta = 9."""
    matrix = (on(POSITION) + separated(ASSIGNMENT)).matrix(PLAIN, separation=9.0)
    assert torch.equal(matrix, torch.diag(torch.tensor([1.0, 1, 3, 3, 3], dtype=torch.float64)))


def test_lifting_by_hand():
    """pi of def:perm-mat: twice the identity, rows d+1 and d+2 swapped."""
    assert lifting(POSITION).matrix(LIFTED).tolist() == [
        [2, 0, 0, 0, 0, 0, 0],
        [0, 2, 0, 0, 0, 0, 0],
        [0, 0, 0, 2, 0, 0, 0],
        [0, 0, 2, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]


coordinates = st.lists(st.integers(-50, 50), min_size=2, max_size=2)


@given(coordinates, coordinates)
def test_lem_perm(x, z):
    """-|x - z|^2 = l(x) . pi l(z), exactly for integers."""
    rows = torch.tensor([x, z], dtype=torch.float64)
    lx, lz = lifted().encoder(rows, torch.zeros(2, 3, dtype=torch.float64))
    pi = lifting(POSITION).matrix(LIFTED)
    assert lx @ pi @ lz == -(rows[0] - rows[1]).square().sum()


def test_affinity_query_by_hand():
    """pi + 2 delta I on both codes, d = 1, k = 2, delta = 3: the lifted robust circuit's query."""
    query = recipes.robust_lifted().affinity.query
    matrix = query.matrix(lifted_with_affinity().space(1, 2), separation=3.0)
    assert matrix.diag().tolist() == [2, 0, 0, 6, 6, 6, 6]
    assert (matrix[1, 2], matrix[2, 1]) == (2, 2)
    assert matrix.count_nonzero() == 7


def test_projections_are_values():
    assert on(POSITION) + on(ASSIGNMENT) == on(POSITION, ASSIGNMENT)
    minus = -on(POSITION)
    assert -minus == on(POSITION)
    assert 2.0 * on(POSITION) != on(POSITION)
    assert hash(on(HALF)) == hash(on(HALF))


def test_subspaces_and_power_of_a_projection():
    assert lifting(POSITION).subspaces == {POSITION, SQUARED_NORM, HALF}
    assert (on(POSITION) + separated(ASSIGNMENT)).power == 0.5
    assert on(POSITION).power == 0


def test_two_powers_of_the_separation_are_refused():
    with pytest.raises(ValueError, match=r"blocks: found powers \[0.5, 1.0\] .* use one"):
        separated(ASSIGNMENT) + separated(AFFINITY, power=1.0)


PRINTED = {
    "I[x]": on(POSITION),
    "−I[y]": -on(ASSIGNMENT),
    "I[x q h]": on(*LIFTED_PARTS),
    "−I[x q h]": -on(*LIFTED_PARTS),
    "I[x] + √δ I[y]": on(POSITION) + separated(ASSIGNMENT),
    "I[x] − √δ I[y]": on(POSITION) + -separated(ASSIGNMENT),
    "0.5 I[x]": 0.5 * on(POSITION),
    "π": lifting(POSITION, ASSIGNMENT),
    "π + 2 δ I[y ŷ]": lifting(POSITION) + CODES,
}


@pytest.mark.parametrize("text", PRINTED)
def test_printing(text):
    assert str(PRINTED[text]) == text
