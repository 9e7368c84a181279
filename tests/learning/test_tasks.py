"""Tasks have the documented distributions, and initial centers are points of the task."""

import math

import pytest
import torch
from scipy import stats

from lloydformer.learning.families import FAMILIES
from lloydformer.learning.tasks import QUANTILES, Tasks, scale_to_unit_cube

ZERO = torch.tensor(0)
NAMES = {"cauchy": "cauchy", "gumbel": "gumbel_r", "laplace": "laplace", "normal": "norm"}


def drawn(tasks, families=("normal",), seeds=(0,), size=4, step=0):
    return tasks.draw(families, torch.tensor(seeds), torch.tensor(step), size)


@pytest.mark.parametrize("family", NAMES)
def test_quantiles_are_scipys(family):
    u = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    wanted = torch.tensor(getattr(stats, NAMES[family]).ppf(u.numpy()))
    torch.testing.assert_close(QUANTILES[family](u), wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_points_have_the_distribution_of_the_family(family):
    """With one component the points are, up to scaling, draws of the family."""
    points, _ = drawn(Tasks(1, 1, 4000), (family,), size=1)
    x = points.flatten().double()
    if family == "lognormal":
        x = _exponent(x)
    name = NAMES.get(family, "norm")
    middle, spread = x.quantile(0.5), x.quantile(0.75) - x.quantile(0.25)
    kind = getattr(stats, name)
    ours = (x - middle) / spread * (kind.ppf(0.75) - kind.ppf(0.25)) + kind.ppf(0.5)
    assert stats.kstest(ours.numpy(), name).statistic < 0.035


def _exponent(x):
    """log(a + x), with a such that the quantiles are symmetric around the median."""
    quarters = [x.quantile(q) for q in (0.05, 0.5, 0.95)]
    low, middle, high = (float(q) for q in quarters)
    a = (middle**2 - low * high) / (low + high - 2 * middle)
    return torch.log(a + x.clamp(min=-a + 1e-6))


def test_every_task_fills_the_unit_cube():
    points, _ = drawn(Tasks(5, 3, 50), FAMILIES, tuple(range(5)))
    assert points.shape == (5, 4, 50, 5)
    assert torch.equal(points.amin(dim=2), torch.zeros(5, 4, 5))
    torch.testing.assert_close(points.amax(dim=2), torch.ones(5, 4, 5))


def test_scaling_of_a_constant_column_is_zero():
    assert torch.equal(scale_to_unit_cube(torch.full((1, 1, 3, 1), 7.0)), torch.zeros(1, 1, 3, 1))


def test_centers_are_different_points():
    points, centers = drawn(Tasks(3, 6, 10), size=20)
    same = (centers[0, :, :, None] == points[0, :, None]).all(dim=-1)  # (b, k, n)
    assert (same.sum(dim=-1) == 1).all()
    assert (same.any(dim=1).sum(dim=-1) == 6).all()


def test_components_are_equally_likely_and_far_apart():
    """With a tiny scale the points of a component coincide, so they can be counted."""
    points, _ = drawn(Tasks(8, 4, 400, scale=1e-5), size=10)
    counts = [_counts(task) for task in points[0]]
    assert all(len(c) == 4 for c in counts)
    assert stats.chisquare(torch.cat(counts).numpy()).pvalue > 1e-3


def test_random_weights_are_uniform_on_the_simplex():
    """Then of two components the larger has a share that is uniform between 1/2 and 1."""
    points, _ = drawn(Tasks(8, 2, 400, weights="random", scale=1e-5), size=300)
    larger = torch.tensor([float(_counts(task).max()) / 400 for task in points[0]])
    assert stats.kstest(larger.numpy(), "uniform", args=(0.5, 0.5)).pvalue > 1e-3


def _counts(task):
    near = (task[:, None] - task[None]).abs().amax(dim=-1) < 0.01
    return near.int().argmax(dim=1).unique(return_counts=True)[1]  # by the first that is near


def test_random_scales_vary_more():
    one = Tasks(2, 1, 200, scales="random")
    spread = torch.cat([drawn(one, seeds=(s,), size=50)[0].std(dim=2).flatten() for s in range(2)])
    assert stats.variation(spread.numpy()) < 0.2  # scaled to the cube, one component hides it
    two = drawn(Tasks(1, 2, 200, n_components=2, scales="random"), size=200)[0]
    equal = drawn(Tasks(1, 2, 200, n_components=2), size=200)[0]
    assert two.std(dim=2).std() > 1.05 * equal.std(dim=2).std()


def test_ranges():
    tasks = Tasks((2, 5), 3, (20, 40), n_components=(1, 9))
    sizes = {drawn(tasks, step=step).points.shape[2] for step in range(60)}
    assert min(sizes) >= 20
    assert max(sizes) <= 40
    assert len(sizes) > 10
    used = (drawn(tasks, size=200).points.amax(dim=2) > 0).sum(dim=-1).unique()
    assert used.tolist() == [2, 3, 4, 5]
    many = drawn(Tasks(8, 3, 200, n_components=(1, 9), scale=1e-5), size=60).points[0]
    assert {len(_counts(task)) for task in many} >= set(range(2, 9))


def test_a_range_of_clusters_is_drawn_for_each_step():
    tasks = Tasks(2, (2, 5), 20)
    assert {drawn(tasks, step=step).centers.shape[2] for step in range(40)} == {2, 3, 4, 5}


def test_the_seed_and_the_step_give_the_tasks():
    tasks = Tasks(3, 2, 10)
    one = drawn(tasks, seeds=(5,), step=3)
    assert torch.equal(one.points, drawn(tasks, seeds=(5,), step=3).points)
    assert not torch.equal(one.points, drawn(tasks, seeds=(5,), step=4).points)
    assert not torch.equal(one.points, drawn(tasks, seeds=(6,), step=3).points)


def test_a_run_draws_the_same_tasks_with_runs_of_other_families():
    tasks = Tasks(3, 2, 10)
    both = drawn(tasks, ("cauchy", "laplace"), (5, 6))
    alone = drawn(tasks, ("laplace",), (6,))
    assert torch.equal(both.points[1:], alone.points)
    assert torch.equal(both.centers[1:], alone.centers)


def test_initial_objective_is_the_papers():
    """tab:mix-res: 6.3430 for normal mixtures in 32 dimensions with 10 clusters."""
    points, centers = drawn(Tasks(), size=64)
    squares = torch.cdist(points[0], centers[0], compute_mode="donot_use_mm_for_euclid_dist") ** 2
    found = squares.amin(dim=-1).sum(dim=-1).log().mean()
    assert math.isclose(found, 6.343, abs_tol=0.05)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_features": 0}, "n_features: found 0"),
        ({"n_points": (5, 2)}, r"n_points: found \(5, 2\)"),
        ({"weights": "some"}, "weights: found 'some'"),
        ({"scale": 0.0}, "scale: found 0.0"),
        ({"n_points": 5, "n_clusters": 6}, "at least as many points as clusters"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused(wrong, words):
    with pytest.raises(ValueError, match=words):
        Tasks(**wrong)
