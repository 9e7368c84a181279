"""The symmetries of k-means hold for any weights, n, d and k: they are built in, not learned."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydformer.learning.lloyd import lloyd_step
from lloydformer.learning.symmetric.layer import INVARIANTS, Frame, NumberLayout, SymmetricLayer

LAYER = SymmetricLayer(NumberLayout(2, 1), by_differences=True)


def weights(seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 0.3 * torch.randn(1, LAYER.n_weights, generator=generator)


def stepped(theta, points, centers, n_steps=1):
    frame = Frame.of(points[None])
    now = frame.inside(centers[None]).unsqueeze(1)
    for _ in range(n_steps):
        now = LAYER(theta.to(points), frame.inside(points[None]), now, 0.5)
    return frame.outside(now[:, 0])[0]


@st.composite
def problems(draw):
    seed = draw(st.integers(0, 2**16))
    k, d = draw(st.integers(1, 12)), draw(st.integers(1, 40))
    n = draw(st.integers(max(k, 2), 200))
    g = torch.Generator().manual_seed(seed)
    points = torch.randn(n, d, generator=g) * (0.2 + torch.rand(d, generator=g))
    return seed, points, points[torch.randperm(n, generator=g)[:k]]


def close(found, wanted, points):
    spread = (points - points.mean(dim=0)).square().sum(dim=1).mean().sqrt()
    assert ((found - wanted).norm(dim=-1) / spread).max() < 1e-5


@settings(max_examples=25, deadline=None)
@given(problems(), st.floats(-1, 1), st.floats(-2, 2))
def test_rotated_shifted_scaled_points_give_rotated_shifted_scaled_centers(problem, shift, power):
    seed, points, centers = problem
    d = points.shape[1]
    g = torch.Generator().manual_seed(seed + 1)
    turn = torch.linalg.qr(torch.randn(d, d, generator=g)).Q
    scale = 10.0**power

    def moved(rows):
        return scale * (rows @ turn + shift)

    found = stepped(weights(seed), moved(points), moved(centers))
    close(found, moved(stepped(weights(seed), points, centers)), moved(points))


@settings(max_examples=25, deadline=None)
@given(problems())
def test_permuted_points_and_centers_give_permuted_centers(problem):
    seed, points, centers = problem
    g = torch.Generator().manual_seed(seed + 2)
    rows, names = (torch.randperm(len(a), generator=g) for a in (points, centers))
    found = stepped(weights(seed), points[rows], centers[names])
    close(found, stepped(weights(seed), points, centers)[names], points)


@settings(max_examples=10, deadline=None)
@given(problems(), st.integers(1, 5))
def test_constant_columns_change_nothing(problem, more):
    seed, points, centers = problem
    wide = torch.nn.functional.pad(points, (0, more), value=0.5)
    found = stepped(weights(seed), wide, torch.nn.functional.pad(centers, (0, more), value=0.5))
    wanted = torch.nn.functional.pad(stepped(weights(seed), points, centers), (0, more), value=0.5)
    close(found, wanted, points)


@settings(max_examples=10, deadline=None)
@given(problems(), st.integers(2, 4))
def test_every_point_several_times_changes_nothing(problem, times):
    seed, points, centers = problem
    found = stepped(weights(seed), points.repeat(times, 1), centers)
    close(found, stepped(weights(seed), points, centers), points)


def hard() -> torch.Tensor:
    theta = torch.zeros(1, LAYER.numbers.count, len(INVARIANTS))
    one = INVARIANTS.index("one")
    for name, value in (("sharpness", 12.0), ("log_belonging", 1.0), ("stride", 0.5)):
        theta[:, LAYER.numbers.rows(name), one] = value
    return theta.flatten(1)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_lloyds_algorithm_is_one_of_these_layers(k):
    points = torch.randn(100, 3, generator=torch.Generator().manual_seed(k)).double()
    zero = torch.tensor(0)
    wanted = lloyd_step(points[None, None], points[None, None, :k], zero[None], zero)[0, 0]
    assert torch.allclose(stepped(hard(), points, points[:k]), wanted, atol=1e-3)
