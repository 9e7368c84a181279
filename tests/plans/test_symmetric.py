"""The plan equals the layer: on every engine, for any n, d and k, with sample weights."""

import math
from dataclasses import replace

import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Chunked, Native, instruction_set
from lloydformer.learning.symmetric.layer import Frame
from lloydformer.learning.symmetric.model import load_symmetric, plan_of
from lloydformer.plans.symmetric import measure_spread

NEEDS_KERNELS = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
ENGINES = {"chunked": Chunked, "native": pytest.param(Native, marks=NEEDS_KERNELS)}
MODEL = load_symmetric()


@pytest.fixture(params=ENGINES.values(), ids=ENGINES)
def engine(request):
    return request.param


def problem(n, d, k, seed=0):
    g = torch.Generator().manual_seed(seed)
    middles = 2 * torch.randn(max(2, k), d, generator=g, dtype=torch.float64)
    points = middles[torch.randint(len(middles), (n,), generator=g)]
    points = points + torch.randn(n, d, generator=g, dtype=torch.float64) + 7
    return points, points[torch.randperm(n, generator=g)[:k]]


def by_layer(points, centers, n_steps):
    """The centers after each step."""
    frame = Frame.of(points[None])
    now, path = frame.inside(centers[None]).unsqueeze(1), []
    for t in range(n_steps):
        time = t / max(1, n_steps - 1)
        now = MODEL.layer(MODEL.weights.to(points), frame.inside(points[None]), now, time)
        path.append(frame.outside(now[:, 0])[0])
    return path


def by_plan(engine, points, starts, weights=None, leaf=8192):
    """One step from each of several starts; start t is run as step number t."""
    data = TensorBlocks(points, weights, leaf)
    with engine.open(data) as session:
        layout = session.layout
        plan = replace(plan_of(MODEL, len(starts)), spread=measure_spread(session))
        placed = [layout.to_row_units(centers).to(layout.dtype) for centers in starts]
        steps = [plan.step(session, centers, t) for t, centers in enumerate(placed)]
    return [(step.update.centers + layout.origin.double(), step) for step in steps]


def far(found, wanted, points):
    spread = (points - points.mean(dim=0)).square().sum(dim=1).mean().sqrt()
    return ((found - wanted).norm(dim=-1) / spread).max().item()


SHAPES = [(300, 5, 4), (2000, 16, 30), (70, 3, 1), (40, 2, 40), (1000, 1, 7), (257, 33, 9)]


@pytest.mark.parametrize(("n", "d", "k"), SHAPES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_a_step_of_the_plan_is_a_step_of_the_layer(engine, n, d, k, dtype):
    points, centers = problem(n, d, k)
    points = points.to(dtype).double()
    states = [centers, *by_layer(points, centers, 5)]
    found = by_plan(engine(2), points.to(dtype), states[:-1], leaf=100)
    for (moved, _), wanted in zip(found, states[1:], strict=True):
        assert far(moved, wanted, points) < (1e-8 if dtype == torch.float64 else 1e-4)


def test_the_objective_belongs_to_the_centers_before_the_step(engine):
    points, centers = problem(500, 4, 6)
    _, step = by_plan(engine(1), points, [centers])[0]
    wanted = torch.cdist(points, centers).square().min(dim=1).values.sum().item()
    assert step.objective.item() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_weight_two_is_a_point_twice_and_weight_zero_no_point(engine, dtype):
    points, centers = problem(400, 6, 5)
    counts = torch.randint(0, 4, (400,), generator=torch.Generator().manual_seed(2))
    many = points.repeat_interleave(counts, dim=0)
    one = by_plan(engine(2), points.to(dtype), [centers] * 3, counts.double(), leaf=64)
    two = by_plan(engine(2), many.to(dtype), [centers] * 3)
    for (a, _), (b, _) in zip(one, two, strict=True):
        assert far(a, b, points) < (1e-10 if dtype == torch.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
def test_threads_do_not_change_a_bit(engine, dtype):
    points, centers = problem(70_000, 4, 6)
    alone, *others = (by_plan(engine(t), points.to(dtype), [centers] * 2) for t in (1, 2, 7))
    for other in others:
        assert all(torch.equal(a, b) for (a, _), (b, _) in zip(alone, other, strict=True))


def test_equal_points_give_finite_centers(engine):
    points = torch.full((50, 3), 4.0, dtype=torch.float64)
    moved, _ = by_plan(engine(1), points, [points[:4]])[0]
    torch.testing.assert_close(moved, points[:4])


def test_centers_far_from_the_points_stay_finite(engine):
    """All scores are far below zero there; no head may divide 0 by 0."""
    points, centers = problem(300, 3, 4)
    moved, _ = by_plan(engine(1), points.float(), [centers + 1e3])[0]
    assert torch.isfinite(moved).all()


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e70])
def test_leaves_of_rows_at_the_middle(engine, scale):
    points = torch.zeros(64, 2, dtype=torch.float64)
    points[32:] = scale * torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64).repeat(16, 1)
    with engine().open(TensorBlocks(points, leaf=16)) as session:
        spread = measure_spread(session)
    assert spread.square == pytest.approx(scale**2 / 2)
    assert spread.tail == pytest.approx(math.log(2))
