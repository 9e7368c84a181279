"""The first layer's tokens: centered exactly, if the recipe is translation invariant."""

from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION, SQUARED_NORM

POINTS = torch.tensor([[0.0, 7.0], [4.0, 7.0], [6.0, 7.0]])


def embedded(recipe, points, *assignments):
    circuit = lf.Circuit(recipe, n_features=points.shape[-1], n_clusters=2)
    return circuit.space, circuit.embed(points, points[:2], *assignments)


def test_positions_are_relative_to_the_origin():
    space, (encoder, decoder, origin) = embedded(lf.recipes.lloyd_dot(), POINTS)
    assert torch.equal(space.read(encoder, POSITION) + origin, POINTS)
    assert torch.equal(space.read(decoder, POSITION) + origin, POINTS[:2])
    squares = (POINTS - origin).square().sum(dim=-1, keepdim=True)
    assert torch.equal(space.read(encoder, SQUARED_NORM), squares)


def test_the_origin_lies_among_the_points(rng):
    points = torch.tensor(rng.normal(size=(50, 3)) * [1e-3, 1, 1e3] + [5, -1e6, 0])
    origin = embedded(lf.recipes.lloyd(), points)[1].origin[0]
    assert (points.amin(dim=0) <= origin).all()
    assert (origin <= points.amax(dim=0)).all()


def test_spherical_points_are_not_centered():
    assert not embedded(lf.recipes.spherical(), POINTS)[1].origin.any()


def test_initial_assignments_are_those_given_or_zero():
    space, fresh = embedded(lf.recipes.lloyd(), POINTS)
    earlier = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert not space.read(fresh.encoder, ASSIGNMENT).any()
    _, going = embedded(lf.recipes.lloyd(), POINTS, earlier)
    assert torch.equal(space.read(going.encoder, ASSIGNMENT), earlier)


def subtracts_exactly(points):
    _, (encoder, _, origin) = embedded(lf.recipes.lloyd(), points)
    pairs = zip(points[:, 0].tolist(), encoder[:, 0].tolist(), strict=True)
    return all(Fraction(x) - Fraction(origin.item()) == Fraction(moved) for x, moved in pairs)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=9), st.integers(-40, 20))
def test_centering_whole_numbers_is_exact(column, exponent):
    assert subtracts_exactly(torch.tensor(column, dtype=torch.float64)[:, None] * 2.0**exponent)


@pytest.mark.parametrize("shift", [1e3, 1e6, -1e9, 1e12])
def test_centering_far_from_the_origin_is_exact(shift, rng):
    assert subtracts_exactly(torch.tensor(rng.normal(size=(100, 1)) + shift))


def test_results_are_translation_invariant(recipe, batch):
    """Multiples of 1/4, shifted by a million, so that the input is exact."""
    if not recipe.translation_invariant:
        pytest.skip("spherical clustering is about one point")
    points, centers = ((4 * tensor).round() / 4 for tensor in batch)
    circuit = lf.Circuit(recipe, n_features=4, n_clusters=3)
    here = circuit(points, centers, 3, seed=0)
    there = circuit(points + 2.0**20, centers + 2.0**20, 3, seed=0)
    assert torch.equal(there.labels, here.labels)
    torch.testing.assert_close(there.centers - 2.0**20, here.centers, rtol=0, atol=1e-9)
