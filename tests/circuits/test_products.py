"""The bilinear network: products within a token."""

import pytest
import torch

from lloydformer.circuits.products import Difference, Product, squared, times
from lloydformer.circuits.subspaces import ABSENT, AFFINITY, ASSIGNMENT, HALF, ONE, POSITION, Space

SPACE = Space(((POSITION, 3), (AFFINITY, 3), (ASSIGNMENT, 2), (ONE, 1), (HALF, 1), (ABSENT, 1)))


@pytest.fixture
def tokens(rng):
    return torch.tensor(rng.normal(size=(2, 5, SPACE.dim)))


def part(tokens, subspace):
    return SPACE.read(tokens, subspace)


def check(product, tokens, expected):
    """Check that it writes the expected values into its target, and zero elsewhere."""
    found = product.build(SPACE)(tokens)
    torch.testing.assert_close(part(found, product.target), expected, rtol=0, atol=1e-14)
    rest = [s for s in SPACE.subspaces if s != product.target]
    assert all(part(found, s).abs().max() == 0 for s in rest)


@pytest.mark.parametrize("coefficient", [1.0, -1.0])
def test_squared_distance(tokens, coefficient):
    apart = part(tokens, POSITION) - part(tokens, AFFINITY)
    check(squared(HALF, POSITION, AFFINITY, coefficient), tokens,
          coefficient * apart.square().sum(dim=-1, keepdim=True))  # fmt: skip


def test_a_number_times_a_code(tokens):
    check(times(ASSIGNMENT, ONE, ASSIGNMENT), tokens, part(tokens, ONE) * part(tokens, ASSIGNMENT))


def test_a_number_times_a_number(tokens):
    check(times(HALF, ONE, ABSENT), tokens, part(tokens, ONE) * part(tokens, ABSENT))


def test_sizes_must_agree():
    product = Product(HALF, Difference(POSITION), Difference(ASSIGNMENT))
    with pytest.raises(
        ValueError, match="subspaces: found sizes 3 and 2; they must be equal, or 1"
    ):
        product.build(SPACE)
