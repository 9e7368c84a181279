"""Circuits: Lloyd by hand, batches, dtypes, schedules, copies; the tokens of the first layer."""

import copy
import pickle
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION, SQUARED_NORM

POINTS = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
CENTERS = torch.tensor([[0.0], [1.0]])


def circuit_for(recipe, points, centers):
    return lf.Circuit(recipe, n_features=points.shape[-1], n_clusters=centers.shape[-2])


@pytest.mark.parametrize("make", [lf.recipes.lloyd, lf.recipes.lloyd_dot, lf.recipes.lloyd_binary])
def test_lloyd_by_hand(make):
    """0 | 1 5 9, means 0 and 5; then 0 1 | 5 9, means 0.5 and 7; then it does not change."""
    trace = circuit_for(make(), POINTS, CENTERS)(POINTS, CENTERS, n_layers=3)
    assert trace.labels.tolist() == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]
    assert trace.centers.squeeze(-1).tolist() == [[0, 1], [0, 5], [0.5, 7], [0.5, 7]]
    assert trace.objective.tolist() == [80, 17, 8.5, 8.5]
    assert trace.assignments[0].tolist() == [[1, 0], [0, 1], [0, 1], [0, 1]]


def test_tied_points_by_hand():
    """0, 2, 4 and centers 0, 4: the point at 2 goes to the first center, or half to each."""
    points, centers = torch.tensor([[0.0], [2.0], [4.0]]), torch.tensor([[0.0], [4.0]])
    first = circuit_for(lf.recipes.lloyd("first"), points, centers)(points, centers, 1)
    average = circuit_for(lf.recipes.lloyd("average"), points, centers)(points, centers, 1)
    assert first.centers[1].tolist() == [[1], [4]]
    assert average.assignments[0].tolist() == [[1, 0], [0.5, 0.5], [0, 1]]
    assert average.centers[1].tolist() == [[0], [4]]  # the decoder ignores the split point


def test_an_empty_cluster_moves_to_the_mean_of_all_points():
    centers = torch.tensor([[0.0], [100.0]])
    trace = circuit_for(lf.recipes.lloyd(), POINTS, centers)(POINTS, centers, 1)
    assert trace.centers[1].tolist() == [[3.75], [3.75]]


def test_a_batch_equals_its_problems_one_by_one(recipe, batch):
    circuit = circuit_for(recipe, *batch)
    together = circuit(*batch, n_layers=4, seed=5)
    for i, (points, centers) in enumerate(zip(*batch, strict=True)):
        alone = circuit(points, centers, n_layers=4, seed=5 + i)
        torch.testing.assert_close(together.centers[i], alone.centers, rtol=0, atol=1e-12)
        torch.testing.assert_close(together.objective[i], alone.objective, rtol=1e-12, atol=0)
        assert torch.equal(together.labels[i], alone.labels)


def test_a_batch_may_have_a_seed_for_each_problem(rng):
    points = torch.tensor(rng.normal(size=(3, 20, 2)))
    circuit = circuit_for(lf.recipes.medoids(), points, points[:, :3])
    together = circuit(points, points[:, :3], 3, seed=[9, 2, 4])
    for i, seed in enumerate([9, 2, 4]):
        alone = circuit(points[i], points[i, :3], 3, seed=np.int64(seed))
        assert torch.equal(together.centers[i], alone.centers)


def test_medoids_are_points_and_depend_on_the_seed(rng):
    points = torch.tensor(rng.normal(size=(20, 2)))
    circuit = circuit_for(lf.recipes.medoids(), points, points[:3])
    runs = [circuit(points, points[:3], 4, seed=s).centers for s in (0, 0, 1)]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert (torch.cdist(runs[0].flatten(0, 1), points).amin(dim=1) < 1e-12).all()


def test_inputs_are_not_changed(recipe, batch):
    before = [tensor.clone() for tensor in batch]
    circuit_for(recipe, *batch)(*batch, n_layers=3, names_filter="*", seed=0)
    assert all(torch.equal(b, now) for b, now in zip(before, batch, strict=True))


def test_float32_gives_float32_close_to_float64(recipe, batch):
    circuit = circuit_for(recipe, *batch)
    fine, coarse = circuit(*batch, 3, seed=0), circuit(*(t.float() for t in batch), 3, seed=0)
    members = coarse.centers, coarse.assignments, coarse.objective
    assert {member.dtype for member in members} == {torch.float32}
    torch.testing.assert_close(coarse.centers.double(), fine.centers, rtol=0, atol=1e-5)


def test_numpy_arrays_are_accepted(batch, recipe):
    circuit = circuit_for(recipe, *batch)
    from_arrays = circuit(*(t.numpy() for t in batch), n_layers=2, seed=0)
    assert torch.equal(from_arrays.centers, circuit(*batch, n_layers=2, seed=0).centers)


def test_a_schedule_alternates_its_recipes(rng):
    points = torch.tensor(rng.normal(size=(30, 2)))
    parts = lf.recipes.lloyd(), lf.recipes.trimmed(0.6)
    both = circuit_for(parts, points, points[:3])(points, points[:3], 3)
    for t, recipe in enumerate([*parts, parts[0]]):
        alone = circuit_for(recipe, points, points[:3])(points, both.centers[t], 1)
        torch.testing.assert_close(both.centers[t + 1], alone.centers[1], rtol=0, atol=1e-12)


def test_each_recipe_of_a_schedule_has_its_own_separation(rng):
    """Medoids with separation 0 draw from all points, though trimming needs a separation."""
    points = torch.tensor(rng.normal(size=(30, 2)))
    medoids, trimmed = lf.recipes.medoids(0.0), lf.recipes.trimmed()
    both = circuit_for((medoids, trimmed), points, points[:3])
    alone = circuit_for(medoids, points, points[:3])
    for seed in range(10):
        drawn = both(points, points[:3], 1, seed=seed).centers[1]
        assert torch.equal(drawn, alone(points, points[:3], 1, seed=seed).centers[1])


def test_copies_and_loaded_weights_give_the_same_centers(recipe, batch):
    circuit = circuit_for(recipe, *batch)
    expected = circuit(*batch, n_layers=2, seed=0).centers
    fresh = circuit_for(recipe, *batch)
    for buffer in fresh.buffers():
        buffer.zero_()
    fresh.load_state_dict(circuit.state_dict())
    for other in (copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit)), fresh):
        assert torch.equal(other(*batch, n_layers=2, seed=0).centers, expected)


def test_weights_are_buffers_by_name():
    circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    weights = circuit.state_dict()
    assert len(weights) == 12
    assert weights["layers.0.encoder_cross.query"].diag().tolist() == [1, 1, 0, 0, 0]
    assert not list(circuit.parameters())


def test_printing():
    circuit = lf.Circuit(lf.recipes.lloyd_binary(), n_features=32, n_clusters=1000)
    assert "n_features=32, n_clusters=1000, dim=42" in repr(circuit)


TRIANGLE = torch.tensor([[0.0, 7.0], [4.0, 7.0], [6.0, 7.0]])


def embedded(recipe, points, *assignments):
    circuit = lf.Circuit(recipe, n_features=points.shape[-1], n_clusters=2)
    return circuit.space, circuit.embed(points, points[:2], *assignments)


def test_positions_are_relative_to_the_origin():
    space, (encoder, decoder, origin) = embedded(lf.recipes.lloyd_dot(), TRIANGLE)
    assert torch.equal(space.read(encoder, POSITION) + origin, TRIANGLE)
    assert torch.equal(space.read(decoder, POSITION) + origin, TRIANGLE[:2])
    squares = (TRIANGLE - origin).square().sum(dim=-1, keepdim=True)
    assert torch.equal(space.read(encoder, SQUARED_NORM), squares)


def test_the_origin_lies_among_the_points(rng):
    points = torch.tensor(rng.normal(size=(50, 3)) * [1e-3, 1, 1e3] + [5, -1e6, 0])
    origin = embedded(lf.recipes.lloyd(), points)[1].origin[0]
    assert (points.amin(dim=0) <= origin).all()
    assert (origin <= points.amax(dim=0)).all()


def test_spherical_points_are_not_centered():
    assert not embedded(lf.recipes.spherical(), TRIANGLE)[1].origin.any()


def test_initial_assignments_are_those_given_or_zero():
    space, fresh = embedded(lf.recipes.lloyd(), TRIANGLE)
    earlier = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert not space.read(fresh.encoder, ASSIGNMENT).any()
    _, going = embedded(lf.recipes.lloyd(), TRIANGLE, earlier)
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
