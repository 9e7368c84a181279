"""The quadratic network writes squared norms, also of negative coordinates."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.subspaces import HALF, POSITION, SQUARED_NORM
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
