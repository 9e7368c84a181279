"""Relocation: circuit = plain algorithm, draw for draw; the objective never rises."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.algorithms import relocating as plainly
from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.circuits.relocating import GAIN, OBJECTIVE, UTILITY
from lloydformer.circuits.subspaces import ABSENT, ASSIGNMENT, POSITION
from lloydformer.paper.verify.problems import Problem, draw
from lloydformer.plans.lower import LoweringError, lower

MARGIN = 1e-6


def relocated(points, centers, layer, n_moved, seed, n_draws=3, margin=MARGIN):
    """Return the plain algorithm's centers after a relocation, kept or not."""
    problem = plainly.WeightedPoints(points, np.ones(len(points)))
    course = plainly.Relocating(n_moved=n_moved, n_draws=n_draws, seed=seed)
    found, tie = course.grow(problem, centers, layer, min(n_moved, len(centers))), plainly.TIE
    found, _ = problem.lloyd(found)
    while len(found) > len(centers):
        found = problem.prune(found, tie * problem.objective(centers))
    found, objective = problem.lloyd(found)
    return found if objective < (1 - margin) * problem.objective(centers) else centers


def by_circuit(points, centers, n_moved, seed, schedule=None, n_layers=1, **settings):
    recipe = lf.recipes.relocating(n_moved, **settings)
    circuit = lf.Circuit(schedule or recipe, points.shape[1], len(centers))
    return circuit(torch.tensor(points), torch.tensor(centers), n_layers, seed=seed)


def away(found, expected, points) -> float:
    """Return the largest difference in spreads."""
    return float(np.abs(found.numpy() - expected).max()) / Problem(points, points, "").spread


def schedule_of(n_moved):
    return [lf.recipes.lloyd(), lf.recipes.lloyd(), lf.recipes.relocating(n_moved)]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_moved=st.integers(1, 6), n_draws=st.integers(1, 4))
def test_one_relocation_on_continuous_data(seed, n_moved, n_draws):
    problem = draw(np.random.default_rng(seed), "uniform", n=(3, 50), d=(1, 6), k=(2, 8))
    trace = by_circuit(problem.points, problem.centers, n_moved, seed, n_draws=n_draws)
    expected = relocated(problem.points, problem.centers, 0, n_moved, seed, n_draws)
    assert away(trace.centers[1], expected, problem.points) < 1e-9
    assert trace.objective[1] <= trace.objective[0]


@pytest.mark.parametrize(
    "number", [0, 3, *(pytest.param(i, marks=pytest.mark.long) for i in (1, 2))]
)
@pytest.mark.parametrize("family", ["clustered", "uniform", "shifted"])
def test_three_rounds_layer_by_layer(family, number):
    """Compare every layer from the circuit's centers, with the noise of that depth."""
    rng = np.random.default_rng([number, 3])
    problem, n_moved = draw(rng, family, n=(20, 70), d=(1, 8), k=(2, 7)), 1 + number
    points, centers = problem.points, problem.centers
    schedule = schedule_of(n_moved)
    trace = by_circuit(points, centers, n_moved, number, schedule, n_layers=9)
    plain, depth = plainly.WeightedPoints(points, np.ones(len(points))), 0
    for t in range(9):
        before = trace.centers[t].numpy()
        labels, _, r, s = plain.two_nearest(before)
        sure = s - r > 1e-9 * problem.spread**2
        assert np.array_equal(trace.labels[t].numpy()[sure], labels[sure])
        lloyd = t % 3 < 2
        expected = (
            plain.lloyd(before)[0] if lloyd else relocated(points, before, depth, n_moved, number)
        )
        depth += 1 if lloyd else 3 + min(n_moved, len(centers))
        assert away(trace.centers[t + 1], expected, points) < 1e-9
    assert (trace.objective.diff() <= 1e-12 * trace.objective[0]).all()


@pytest.mark.parametrize("seed", range(4))
def test_free_running_circuit_equals_the_algorithm(seed):
    """Two rounds of the algorithm, which decides by itself when to relocate."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(150, 4)) + 4 * rng.integers(0, 2, size=(150, 4))
    centers, n_moved = points[:6], 3
    n_round = 2 + 3 + n_moved
    plain = plainly.Relocating(n_moved=n_moved, rest=2, seed=seed)
    course = plain.run(points, centers, 2 * n_round)
    trace = by_circuit(points, centers, n_moved, seed, schedule_of(n_moved), n_layers=6)
    same = [0, 1, 2, n_round, n_round + 1, n_round + 2, 2 * n_round]
    assert len(course.centers) == 2 * n_round + 1
    assert away(trace.centers, course.centers[same], points) < 1e-9
    np.testing.assert_allclose(trace.objective.numpy(), course.objective[same], rtol=1e-9)
    assert any(course.kept)


def undecided(points, centers, n_moved, seed) -> bool:
    """Does the plain algorithm give another result if all points are shifted?"""
    here = relocated(points, centers, 0, n_moved, seed)
    shifted = [
        relocated(points + by, centers + by, 0, n_moved, seed) - by
        for by in (0.1, 0.7, -1 / 3, np.pi)
    ]
    return any(np.abs(other - here).max() > 1e-9 for other in shifted)


@pytest.mark.long
def test_whole_numbers_with_duplicates_ties_and_empty_clusters():
    """Equal unless rounding decides between equal proposals, which is rare."""
    decided = 0
    for number in range(30):
        rng = np.random.default_rng([number, 9])
        n, d, width = int(rng.integers(2, 40)), int(rng.integers(1, 4)), int(rng.integers(0, 4))
        points = rng.integers(-width, width, size=(n, d), endpoint=True).astype(float)
        k = int(rng.integers(1, min(8, n), endpoint=True))
        centers = points[rng.choice(n, k, replace=False)]
        centers[: int(rng.random() < 0.3)] = 100.0  # without points
        n_moved = int(rng.integers(1, 6))
        found = by_circuit(points, centers, n_moved, number).centers
        assert torch.isfinite(found).all()
        expected = relocated(points, centers, 0, n_moved, number)
        if np.abs(found[1].numpy() - expected).max() <= 1e-9:
            decided += 1
        else:
            assert undecided(points, centers, n_moved, number), number
    assert decided >= 25


@pytest.mark.parametrize("n_candidates", [1, pytest.param(2, marks=pytest.mark.long), 5])
def test_only_candidates_are_removed(n_candidates, monkeypatch):
    monkeypatch.setattr(plainly, "REMOVAL_CANDIDATES", n_candidates)
    differ = 0
    for seed in range(3):
        rng = np.random.default_rng([seed, 5])
        points = rng.normal(size=(60, 3))
        trace = by_circuit(points, points[:8], 4, seed, n_candidates=n_candidates)
        expected = relocated(points, points[:8], 0, 4, seed)
        assert away(trace.centers[1], expected, points) < 1e-9
        differ += not torch.equal(trace.centers, by_circuit(points, points[:8], 4, seed).centers)
    assert differ or n_candidates > 1  # with a single candidate the limit matters


@pytest.mark.parametrize("margin", [0.0, 0.05, 0.999])
def test_new_centers_are_kept_if_better_by_the_margin(margin, rng):
    kept = 0
    for seed in range(8):
        points = rng.normal(size=(40, 2))
        expected = relocated(points, points[:4], 0, 2, seed, margin=margin)
        trace = by_circuit(points, points[:4], 2, seed, margin=margin)
        assert away(trace.centers[1], expected, points) < 1e-9
        kept += not np.array_equal(expected, points[:4])
    assert (kept == 0) if margin > 0.9 else kept > 0


def test_centers_of_equal_points_do_not_move():
    points = np.ones((6, 2))
    assert np.array_equal(by_circuit(points, points[:3], 2, 0).centers[1], points[:3])


def test_one_cluster():
    points = np.array([[0.0], [1.0], [5.0], [6.0]])
    trace = by_circuit(points, points[:1], 5, 0)
    assert away(trace.centers[1], relocated(points, points[:1], 0, 5, 0), points) < 1e-9


def test_by_hand():
    """Two centers share the left pair, one has both right pairs: one moves to the right."""
    points = np.array([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    trace = by_circuit(points, np.array([[0.0], [1.0], [15.5]]), 1, 0)
    assert sorted(trace.centers[1].flatten().tolist()) == [0.5, 10.5, 20.5]
    assert trace.objective.tolist() == [101.0, 1.5]


def test_single_precision(rng):
    points = rng.normal(size=(40, 3)).astype(np.float32)
    trace = by_circuit(points, points[:5], 3, 1)
    expected = relocated(points.astype(float), points[:5].astype(float), 0, 3, 1)
    assert trace.centers.dtype == torch.float32
    assert away(trace.centers[1].double(), expected, points.astype(float)) < 2e-5


def test_a_batch_equals_its_problems_one_by_one(rng):
    points = torch.tensor(rng.normal(size=(3, 30, 2)))
    circuit = lf.Circuit(schedule_of(2), 2, 4)
    together = circuit(points, points[:, :4], 6, seed=[9, 2, 4])
    for i, seed in enumerate([9, 2, 4]):
        alone = circuit(points[i], points[i, :4], 6, seed=seed)
        torch.testing.assert_close(together.centers[i], alone.centers, rtol=0, atol=1e-12)
        assert torch.equal(together.labels[i], alone.labels)


def test_another_seed_draws_differently(rng):
    points = rng.normal(size=(60, 3))
    runs = [by_circuit(points, points[:6], 2, seed).centers for seed in (0, 0, 1, 2, 3)]
    assert torch.equal(runs[0], runs[1])
    assert any(not torch.equal(runs[0], other) for other in runs[2:])


@pytest.fixture
def relocation_trace(rng):
    points = rng.normal(size=(30, 2))
    circuit = lf.Circuit(schedule_of(2), 2, 4)
    trace = circuit(
        torch.tensor(points), torch.tensor(points[:4]), 3, names_filter="layers.2.*", seed=3
    )
    return points, circuit.layers[2].inner, trace


def test_names_and_shapes_of_intermediates(relocation_trace):
    _, inner, trace = relocation_trace
    assert all(name in trace.kept for name in trace.names if name.startswith("layers.2."))
    shapes = {
        "grow.assign.nearest.attention": (30, 4),
        "grow.draw.point.attention": (3, 4, 30),
        "grow.sides.next": (3, 30, inner.dim),
        "grow.split.next": (3, 4, inner.dim),
        "grow.offer.cluster.attention": (2, 4),
        "prune.0.rank.least.attention": (6, 6),
        "prune.1.ahead.nearest.attention": (6, 30, 6),
        "prune.1.choose.best.attention": (6, 1, 7),
        "keep.choose.best.scores": (4, 1, 2),
        "decoder_next": (4, 2 + 4),
    }
    assert {name: tuple(trace[f"layers.2.{name}"].shape) for name in shapes} == shapes
    assert torch.equal(trace["layers.2.grow.assign.nearest.attention"], trace.assignments[2])


def test_gains_equal_the_decrease_of_the_objective(relocation_trace):
    """Independent check: the decrease of the objective around the means."""
    points, inner, trace = relocation_trace
    labels = trace.labels[2].numpy()
    near = trace["layers.2.grow.sides.side.attention"][..., 4:].sum(dim=-1).numpy() > 0  # (3, n)
    found = inner.read(trace["layers.2.grow.split.next"], GAIN)[..., 0].numpy()  # (3, k)

    def spent(own):
        return ((points[own] - points[own].mean(axis=0)) ** 2).sum() if own.any() else 0.0

    for h in range(3):
        for j in range(4):
            own = labels == j
            gain = spent(own) - spent(own & near[h]) - spent(own & ~near[h])
            assert found[h, j] == pytest.approx(gain, abs=1e-9)
    assert found.max() > 0


def test_utilities_equal_the_increase_of_the_objective(relocation_trace):
    """Independent check: the objective without a center minus the objective with it."""
    points, inner, trace = relocation_trace
    slots = trace["layers.2.prune.0.utility.next"]
    assert inner.read(slots, ABSENT).abs().max() == 0
    centers = (inner.read(slots, POSITION) + trace.origin).numpy()

    def objective(c):
        return squared_distances(points, c).min(axis=1).sum()

    losses = [objective(np.delete(centers, j, axis=0)) - objective(centers) for j in range(6)]
    np.testing.assert_allclose(inner.read(slots, UTILITY)[:, 0].numpy(), losses, atol=1e-9)
    candidates = trace["layers.2.prune.0.rank.least.attention"].argmax(dim=-1)
    assert candidates.tolist() == sorted(np.argsort(losses)[: len(candidates)])


def test_the_chosen_proposal_costs_the_least(relocation_trace):
    _, inner, trace = relocation_trace
    proposals = inner.read(trace["layers.2.prune.0.tell.next"], OBJECTIVE)  # (6, 6, 1)
    assert (proposals == proposals[:, :1]).all()  # every slot has read the same value
    chosen = trace["layers.2.prune.0.choose.best.attention"][:, 0]  # (6, 7)
    assert (chosen.argmax(dim=-1) == 1 + proposals[:, 0, 0].argmin()).all()
    absent = [inner.read(trace[f"layers.2.prune.{i}.choose.next"], ABSENT).sum() for i in (0, 1)]
    assert absent == [1, 2]


def test_the_layer_writes_the_assignment_of_points(relocation_trace):
    _, _, trace = relocation_trace
    circuit = lf.Circuit(schedule_of(2), 2, 4)
    codes = circuit.space.read(trace["layers.2.encoder_next"], ASSIGNMENT)
    assert torch.equal(codes, trace.assignments[2])


def test_weights_can_be_trained(rng):
    points = torch.tensor(rng.normal(size=(20, 2)))
    with pytest.warns(NoGradientWarning):
        circuit = lf.Circuit(schedule_of(1), 2, 3, trainable=True).double()
    circuit(points, points[:3], 3, seed=0).objective[-1].backward()
    weights = dict(circuit.layers[2].named_parameters())
    assert weights["keep.move.mean.value"].grad.isfinite().all()


WRONG = {
    "other tokens": (
        lambda: lf.Circuit([lf.recipes.lloyd_dot(), lf.recipes.relocating()], 2, 3),
        r"same tokens; found several: lloyd_dot has position, squared_norm, half, assignment "
        r"\(OneHot\); relocating has position, assignment \(OneHot\)",
    ),
    "other codes": (
        lambda: lf.Circuit([lf.recipes.lloyd_binary(), lf.recipes.relocating()], 2, 3),
        r"lloyd_binary has position, assignment \(Binary\); relocating",
    ),
    "nothing moves": (lambda: lf.recipes.relocating(0), "n_moved: found 0"),
    "no draws": (lambda: lf.recipes.relocating(n_draws=0), "n_draws: found 0"),
    "no candidates": (lambda: lf.recipes.relocating(n_candidates=-1), "n_candidates: found -1"),
    "a margin that is none": (lambda: lf.recipes.relocating(margin=1.0), "margin: found 1.0"),
    "no sharpness": (lambda: lf.recipes.relocating(sharpness=0.0), "power: found 0.0"),
    "no seed": (
        lambda: lf.Circuit(lf.recipes.relocating(), 1, 2)(torch.eye(2)[:, :1], torch.eye(2)[:, :1]),
        "seed: found None; this attention draws noise, pass an integer seed",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_parameters_are_refused(what):
    make, complaint = WRONG[what]
    with pytest.raises(ValueError, match=complaint):
        make()


def test_unfitting_stages_are_refused():
    recipe = lf.recipes.relocating()
    grow, settle, *others = recipe.sublayers
    with pytest.raises(
        ValueError, match=r"settle.assign.nearest: it reads tokens \['slots'\] before"
    ):
        replace(recipe, sublayers=(settle, grow, *others))
    with pytest.raises(
        ValueError, match=r"grow.split: it uses \['gain'\], which its tokens do not"
    ):
        replace(recipe, inner=tuple(part for part in recipe.inner if part[0] != GAIN))
    with pytest.raises(ValueError, match="inner: tokens need position"):
        replace(recipe, inner=tuple(part for part in recipe.inner if part[0] != POSITION))
    with pytest.raises(ValueError, match="no stage makes the tokens 'assigned'"):
        replace(recipe, sublayers=())


def test_lowering_names_the_estimator():
    with pytest.raises(LoweringError, match=r"relocating prevents lowering.*RelocatingKMeans"):
        lower(lf.recipes.relocating())


def test_depth_is_three_plus_the_moved_centers():
    assert lf.recipes.relocating(5).depth(n_clusters=10) == 8
    assert lf.recipes.relocating(5).depth(n_clusters=2) == 5
    assert lf.recipes.lloyd().depth(n_clusters=2) == 1
