"""Networks on single tokens: the quadratic one by hand, and products of subspaces."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.circuits.feedforward import Difference, Product, Quadratic, squared_distance, times
from lloydformer.circuits.subspaces import (
    ABSENT,
    AFFINITY,
    ASSIGNMENT,
    HALF,
    ONE,
    POSITION,
    SQUARED_NORM,
    Space,
)
from lloydformer.circuits.tokens import lifted

SPACE = lifted().space(2, 3)
UNITS = ("square", "rectified")


@pytest.mark.parametrize("unit", UNITS)
def test_by_hand(unit):
    """A center at (-3, 4) of cluster 1: 25 and -1/2 are added, nothing else."""
    tokens = torch.tensor([[-3.0, 4.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
    assert Quadratic(unit).build(SPACE)(tokens).tolist() == [[0, 0, 25, -0.5, 0, 0, 0]]


@pytest.mark.parametrize("unit", UNITS)
@given(x=st.floats(-1e3, 1e3), y=st.floats(-1e3, 1e3))
def test_the_squared_norm(unit, x, y):
    tokens = torch.tensor([[x, y, 7.0, 8.0, 9.0, 9.0, 9.0]], dtype=torch.float64)
    found = SPACE.read(Quadratic(unit).build(SPACE)(tokens), SQUARED_NORM)
    assert found.item() == pytest.approx(x * x + y * y, rel=1e-14)


@pytest.mark.parametrize(("unit", "hidden"), [("square", 2), ("rectified", 4)])
def test_number_of_hidden_units(unit, hidden):
    network = Quadratic(unit).build(SPACE)
    assert network.inward.shape == (hidden, SPACE.dim)
    assert network.outward.shape == (SPACE.dim, hidden)


def test_rectified_units_without_the_negated_ones_lose_coordinates():
    """With the weights for plain squares: 16 for (-3, 4)."""
    network = Quadratic("rectified").build(SPACE)
    network.inward, network.outward = network.inward[:2], network.outward[:, :2]
    tokens = torch.tensor([[-3.0, 4.0, 0.0, 0.0, 0.0, 1.0, 0.0]])
    assert SPACE.read(network(tokens), SQUARED_NORM).item() == 16


def test_subspaces_of_the_network():
    assert Quadratic().subspaces == {POSITION, SQUARED_NORM, HALF}


@pytest.mark.parametrize("unit", UNITS)
def test_its_weights_follow_the_dtype_of_the_tokens(unit):
    assert Quadratic(unit).build(SPACE)(torch.zeros(1, 7)).dtype == torch.float32


WIDE = Space(((POSITION, 3), (AFFINITY, 3), (ASSIGNMENT, 2), (ONE, 1), (HALF, 1), (ABSENT, 1)))


@pytest.fixture
def tokens(rng):
    return torch.tensor(rng.normal(size=(2, 5, WIDE.dim)))


def part(tokens, subspace):
    return WIDE.read(tokens, subspace)


def check(product, tokens, expected):
    """Check that it writes the expected values into its target, and zero elsewhere."""
    found = product.build(WIDE)(tokens)
    torch.testing.assert_close(part(found, product.target), expected, rtol=0, atol=1e-14)
    rest = [s for s in WIDE.subspaces if s != product.target]
    assert all(part(found, s).abs().max() == 0 for s in rest)


@pytest.mark.parametrize("coefficient", [1.0, -1.0])
def test_squared_distance(tokens, coefficient):
    apart = part(tokens, POSITION) - part(tokens, AFFINITY)
    check(
        squared_distance(HALF, POSITION, AFFINITY, coefficient),
        tokens,
        coefficient * apart.square().sum(dim=-1, keepdim=True),
    )


def test_a_number_times_a_code(tokens):
    check(times(ASSIGNMENT, ONE, ASSIGNMENT), tokens, part(tokens, ONE) * part(tokens, ASSIGNMENT))


def test_a_number_times_a_number(tokens):
    check(times(HALF, ONE, ABSENT), tokens, part(tokens, ONE) * part(tokens, ABSENT))


def test_sizes_must_agree():
    product = Product(HALF, Difference(POSITION), Difference(ASSIGNMENT))
    with pytest.raises(
        ValueError, match="subspaces: found sizes 3 and 2; they must be equal, or 1"
    ):
        product.build(WIDE)
