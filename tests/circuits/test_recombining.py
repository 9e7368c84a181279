"""Recombination: circuit = plain algorithm, draw for draw; the better solution never gets worse."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.algorithms import recombining as plainly
from lloydformer.algorithms.relocating import Relocating, WeightedPoints
from lloydformer.circuits.recombining import COST, MASS
from lloydformer.circuits.subspaces import ABSENT, POSITION
from lloydformer.numerics.noise import gumbel
from lloydformer.paper.verify.problems import Problem, draw
from lloydformer.plans.lower import LoweringError, lower


def recombined(points, pair, n_moved, seed, layer=0, n_steps=2, n_draws=3):
    """Return the centers of both solutions after a recombination, by the plain algorithm."""
    problem = WeightedPoints(points, np.ones(len(points)))
    pool = [plainly.measure(problem, half) for half in np.split(pair, 2)]
    masses = np.concatenate([one.masses for one in pool])
    child = plainly.merge_centers(pair, masses, len(pair) // 2)
    child = Relocating(n_moved, n_draws, seed=seed).relocate(points, child, layer)
    for _ in range(n_steps):
        child, _ = problem.lloyd(child)
    pool.sort(key=lambda one: one.objective)
    plainly.add_to_pool(pool, plainly.measure(problem, child), 2)
    return np.concatenate([one.centers for one in pool])


def by_circuit(points, pair, n_moved, seed, n_layers=1, names_filter=(), **changes):
    recipe = lf.recipes.recombining(n_moved, **changes)
    circuit = lf.Circuit(recipe, points.shape[1], len(pair))
    return circuit(
        torch.tensor(points), torch.tensor(pair), n_layers, names_filter=names_filter, seed=seed
    )


def away(found, expected, points) -> float:
    """Return the largest difference in spreads."""
    return float(np.abs(found.numpy() - expected).max()) / Problem(points, points, "").spread


def objectives(points, centers):
    """Return the objectives of both solutions."""
    problem = WeightedPoints(points, np.ones(len(points)))
    return [problem.objective(half) for half in np.split(np.asarray(centers), 2)]


def pair_of(rng, points, k):
    return points[np.concatenate([rng.choice(len(points), k, replace=False) for _ in range(2)])]


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_moved=st.integers(1, 5),
    n_draws=st.integers(1, 4),
    n_steps=st.integers(0, 3),
)
def test_one_recombination_on_continuous_data(seed, n_moved, n_draws, n_steps):
    rng = np.random.default_rng(seed)
    problem = draw(rng, "uniform", n=(12, 40), d=(1, 5), k=(2, 5))
    points, pair = problem.points, pair_of(rng, problem.points, len(problem.centers))
    trace = by_circuit(points, pair, n_moved, seed, n_draws=n_draws, n_steps=n_steps)
    expected = recombined(points, pair, n_moved, seed, 0, n_steps, n_draws)
    assert away(trace.centers[1], expected, points) < 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_several_layers_and_their_noise(seed):
    """Compare every layer from the circuit's centers, with the noise of that depth."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(60, 2)) + 6 * rng.integers(0, 3, size=(60, 2))
    pair = pair_of(rng, points, 5)
    trace = by_circuit(points, pair, 2, seed, n_layers=3)
    depth = lf.recipes.recombining(2).depth(10)
    for t in range(3):
        expected = recombined(points, trace.centers[t].numpy(), 2, seed, layer=t * depth)
        assert away(trace.centers[t + 1], expected, points) < 1e-9
    courses = np.array([objectives(points, centers) for centers in trace.centers[1:]])
    assert (courses[:, 0] <= courses[:, 1]).all()
    best = [min(objectives(points, pair)), *courses[:, 0]]
    assert (np.diff(best) <= 1e-12 * best[0]).all()
    assert best[-1] < best[0]


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_the_algorithm_makes_the_same_child(seed):
    """A pool of two settled solutions, and one child, whose parents the algorithm draws."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(80, 3)) + 5 * rng.integers(0, 3, size=(80, 3))
    problem, k, n_moved, n_steps = WeightedPoints(points, np.ones(80)), 6, 2, 3
    starts = []
    for start in np.split(pair_of(rng, points, k), 2):
        for _ in range(30):
            start, _ = problem.lloyd(start)
        starts.append(start)
    starts.sort(key=problem.objective)
    plain = plainly.Recombining(
        n_children=1, patience=0, child_patience=1, together=1, n_moved=n_moved, rest=0, seed=seed
    )
    found = plain.run(points, np.stack(starts), 2 + 3 + n_moved + n_steps)
    noise = gumbel(seed, 0, "parents", 2, torch.zeros(1, dtype=torch.long))[:, 0]
    order = noise.argsort(descending=True)
    pair = np.concatenate([starts[place] for place in order])
    trace = by_circuit(points, pair, n_moved, seed + 2, n_steps=n_steps)
    expected = np.concatenate([one.centers for one in found.pool])
    assert away(trace.centers[1], expected, points) < 1e-9
    assert found.kept == (True,)  # so the child is compared, not only its parents


def test_by_hand():
    """Each solution is wrong at one end: the child has the right half of either."""
    points = np.repeat(np.arange(4) * 10.0, 2)[:, None] + np.tile([[0.0], [1.0]], (4, 1))
    pair = np.array([[0.0], [1.0], [10.5], [25.5], [5.5], [20.5], [30.0], [31.0]])
    trace = by_circuit(points, pair, 1, 0)
    assert trace.centers[1].flatten().tolist() == [0.5, 10.5, 20.5, 30.5, 0.0, 1.0, 10.5, 25.5]


def test_a_child_like_a_parent_is_not_taken():
    points = np.array([[0.0], [1.0], [10.0], [11.0]])
    pair = np.array([[0.5], [10.5], [3.0], [11.0]])
    trace = by_circuit(points, pair, 1, 0, n_layers=2)
    assert np.array_equal(trace.centers[1], pair)
    assert np.array_equal(trace.centers[2], pair)
    swapped = by_circuit(points, np.concatenate([pair[2:], pair[:2]]), 1, 0)
    assert np.array_equal(swapped.centers[1], pair)  # the better one comes first


def test_centers_without_points_and_equal_centers():
    """Masses of 0, pairs that cost 0, and equal solutions give no NaN, and what is expected."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 2))
    far = np.full((2, 2), 50.0) + np.eye(2)
    pair = np.concatenate([points[:2], far, points[2:4], far + 1])
    trace = by_circuit(points, pair, 2, 1)
    assert away(trace.centers[1], recombined(points, pair, 2, 1), points) < 1e-9
    both = np.concatenate([points[:3], points[:3]])
    trace = by_circuit(points, both, 2, 1)
    assert away(trace.centers[1, :3], recombined(points, both, 2, 1)[:3], points) < 1e-9


@pytest.fixture
def merging_trace(rng):
    points = rng.normal(size=(40, 2))
    pair = pair_of(rng, points, 3)
    return points, pair, by_circuit(points, pair, 2, 3, names_filter="layers.0.*")


def test_masses_costs_and_shapes(merging_trace):
    """Independent check: masses by counting, costs by the definition."""
    points, pair, trace = merging_trace
    inner = lf.Circuit(lf.recipes.recombining(2), 2, 6).layers[0].inner
    problem = WeightedPoints(points, np.ones(40))
    masses = np.concatenate([plainly.measure(problem, half).masses for half in np.split(pair, 2)])
    united = trace["layers.0.unite.count.next"]
    assert np.array_equal(inner.read(united, MASS)[:, 0], masses)
    costs = inner.read(trace["layers.0.merge.0.cost.next"], COST)[..., 0]  # (6, 6)
    for a in range(6):
        for b in range(6):
            m, n = masses[a], masses[b]
            expected = m * n / (m + n) * ((pair[a] - pair[b]) ** 2).sum()
            assert costs[a, b] == pytest.approx(expected)
    absent = [inner.read(trace[f"layers.0.merge.{i}.replace.next"], ABSENT).sum() for i in range(3)]
    assert absent == [1, 2, 3]
    assert trace["layers.0.merge.2.choose.cheapest.attention"].shape == (1, 1, 6)
    assert trace.assignments.shape == (1, 40, 6)
    assert trace.labels.max() < 3
    child = inner.read(trace["layers.0.bear.gather.next"], POSITION)[:3] + trace.origin
    merged = plainly.merge_centers(pair, masses, 3)
    np.testing.assert_allclose(child, merged, atol=1e-12)


@pytest.mark.long
def test_a_batch_equals_its_problems_one_by_one(rng):
    points = torch.tensor(rng.normal(size=(2, 25, 2)))
    circuit = lf.Circuit(lf.recipes.recombining(2), 2, 6)
    together = circuit(points, points[:, :6], 2, seed=[9, 2])
    for i, seed in enumerate([9, 2]):
        alone = circuit(points[i], points[i, :6], 2, seed=seed)
        torch.testing.assert_close(together.centers[i], alone.centers, rtol=0, atol=1e-12)


def test_single_precision(rng):
    points = rng.normal(size=(40, 3)).astype(np.float32)
    trace = by_circuit(points, points[:8], 2, 1)
    expected = recombined(points.astype(float), points[:8].astype(float), 2, 1)
    assert trace.centers.dtype == torch.float32
    assert away(trace.centers[1].double(), expected, points.astype(float)) < 2e-5


WRONG = {
    "an odd number": (
        lambda: lf.Circuit(lf.recipes.recombining(), 2, 5),
        "n_clusters: found 5; the centers are those of two solutions, pass an even number",
    ),
    "no steps": (lambda: lf.recipes.recombining(n_steps=-1), "n_steps: found -1"),
    "nothing moves": (lambda: lf.recipes.recombining(0), "n_moved: found 0"),
    "a margin that is none": (lambda: lf.recipes.recombining(margin=1.0), "margin: found 1.0"),
    "all are the same": (lambda: lf.recipes.recombining(same=-0.1), "same: found -0.1"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused(what):
    make, complaint = WRONG[what]
    with pytest.raises(ValueError, match=complaint):
        make()


def test_sublayers_repeated_for_an_unknown_set_are_refused():
    recipe = lf.recipes.recombining()
    unite, merge, *others = recipe.sublayers
    with pytest.raises(ValueError, match="merge: it is repeated for 'children'"):
        replace(recipe, sublayers=(unite, replace(merge, repeated="children"), *others))


def test_lowering_names_the_estimator():
    with pytest.raises(LoweringError, match=r"recombining prevents lowering.*RelocatingKMeans"):
        lower(lf.recipes.recombining())


def test_depth():
    assert lf.recipes.recombining(5, n_steps=2).depth(20) == 1 + 10 + 1 + 8 + 2 + 1
