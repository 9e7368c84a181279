"""Skipping work changes nothing: labels, sums and counts with bounds and without, at each step."""

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native, instruction_set
from lloydformer.plans.contract import apply_update
from lloydformer.plans.means import MeansPlan

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
ITERATIONS = 30


def mixture(rng, n, d, k):
    return rng.normal(size=(n, d)) + rng.uniform(-6, 6, size=(k, d))[rng.integers(k, size=n)]


def uniform(rng, n, d, k):
    return rng.uniform(size=(n, d))


def grid(rng, n, d, k):
    """Whole numbers, full of ties."""
    return rng.integers(-4, 5, size=(n, d)).astype(float)


def duplicated(rng, n, d, k):
    few = mixture(rng, max(k, n // 5), d, k)
    return few[rng.integers(len(few), size=n)]


def outliers(rng, n, d, k):
    points = mixture(rng, n, d, k)
    points[rng.integers(n, size=3)] *= 1e6
    return points


def far(rng, n, d, k):
    return mixture(rng, n, d, k) + 1e4


def line(rng, n, d, k):
    """All on one line: groups of centers overlap in every feature."""
    return rng.normal(size=(n, 1)) * np.linspace(1, 2, d)


KINDS = [mixture, uniform, grid, duplicated, outliers, far, line]


def problem(kind, seed: int, dtype, directions: bool = False, most: int = 60):
    """Blocks and initial centers; every second problem has weights, some of them zero."""
    rng = np.random.default_rng([seed, 9])
    n, d, k = int(rng.integers(400, 3000)), int(rng.integers(1, 20)), int(rng.integers(2, most))
    d = max(d, 2) if directions else d
    points = torch.from_numpy(kind(rng, n, d, k) + 0.25 * directions).to(dtype)
    weights = rng.uniform(0, 2, size=n) * (rng.random(n) < 0.9) if seed % 2 else None
    data = TensorBlocks(
        points, None if weights is None else torch.from_numpy(weights), directions=directions
    )
    return data, data.take(torch.from_numpy(rng.choice(n, size=k, replace=False))).double()


def check(course, data, centers, n_iter: int = ITERATIONS) -> list[int]:
    """Equal labels and masses at each step, equal sums; returns how many points were looked at."""
    plan = MeansPlan(data.directions)
    with_bounds = course(Native(), data, plan, centers, n_iter, bounds=True)
    without = course(Native(bounded=False), data, plan, centers, n_iter, bounds=True)
    for one, other in zip(with_bounds.seen, without.seen, strict=True):
        assert torch.equal(one.labels, other.labels)
        assert one.changed == other.changed
        ours, plain = one.update, other.update
        torch.testing.assert_close(ours.masses, plain.masses, rtol=1e-12, atol=1e-12)
        scale = plain.sums.abs().max().item()
        torch.testing.assert_close(ours.sums, plain.sums, rtol=0, atol=1e-12 * scale)
    assert torch.equal(with_bounds.labels, without.labels)
    assert with_bounds.final.inertia == pytest.approx(without.final.inertia, rel=1e-12)
    assert {step.looked_at for step in without.seen} == {data.n_rows}
    return [step.looked_at for step in with_bounds.seen]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_change_nothing(course, kind, dtype):
    problems = [problem(kind, seed, dtype) for seed in range(6)]
    skipped = [min(check(course, *one)) < one[0].n_rows for one in problems]
    assert any(skipped)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_bounds_change_nothing_on_the_sphere(course, dtype):
    problems = [problem(mixture, seed, dtype, directions=True) for seed in range(8)]
    skipped = [min(check(course, *one)) < one[0].n_rows for one in problems]
    assert any(skipped)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("far", [None, 1e3, 1e9], ids=str)
def test_bounds_are_in_use(course, dtype, far):
    """On blobs, after some iterations most points are not looked at any more.

    A few far rows do not change that: bounds are rounded by their own size.
    """
    rng = np.random.default_rng(0)
    points = torch.from_numpy(mixture(rng, 5000, 8, 40)).to(dtype)
    if far is not None:
        points[::1000] *= far
    data = TensorBlocks(points)
    looked_at = check(course, data, data.take(torch.arange(40)).double())
    assert looked_at[0] == len(points)
    assert looked_at[-1] < len(points) // 4
    assert sum(number < len(points) // 2 for number in looked_at) >= 10


def test_whole_numbers_give_the_same_bits(course):
    """Sums of whole numbers are exact in whatever order points come and go."""
    for seed in range(0, 12, 2):
        data, centers = problem(grid, seed, torch.float64)
        one, other = (
            course(Native(bounded=bounded), data, MeansPlan(), centers, ITERATIONS)
            for bounded in (True, False)
        )
        assert one.same_bits(other)


@pytest.mark.parametrize("power", [-450, -100, -77, -76, -75, -70, 60, 62, 64, 100, 450])
def test_the_unit_of_the_data_does_not_matter(course, power):
    """Times a power of two, every number but its exponent is the same, and so are labels."""
    rng = np.random.default_rng(6)
    points = torch.from_numpy(mixture(rng, 3000, 6, 40))
    runs = []
    for factor in (1.0, 2.0**power):
        data = TensorBlocks(points * factor)
        start = data.take(torch.arange(40)).double()
        runs.append(course(Native(), data, MeansPlan(), start, ITERATIONS, bounds=True))
    plain, scaled = runs
    for one, other in zip(plain.seen, scaled.seen, strict=True):
        assert torch.equal(one.labels, other.labels)
    assert torch.equal(plain.labels, scaled.labels)
    assert min(step.looked_at for step in plain.seen) < 1500


def test_a_center_that_jumps(course):
    """A center is taken from one end of the data to the other, as empty clusters are."""
    rng = np.random.default_rng(4)
    data = TensorBlocks(torch.from_numpy(mixture(rng, 3000, 16, 20)).float())
    plan, n_jumps = MeansPlan(), 3

    def jump(step, centers):
        new = apply_update(step.update, centers).clone()
        if step.changed < 60:
            new[rng.integers(len(new))] = data.take(rng_rows(rng, data))[0].double()
        return new

    courses = []
    for bounded in (True, False):
        rng = np.random.default_rng(5)
        start = data.take(torch.arange(20)).double()
        engine = Native(bounded=bounded)
        courses.append(course(engine, data, plan, start, 60, bounds=True, move=jump))
    one, other = courses
    assert all(torch.equal(a.labels, b.labels) for a, b in zip(one.seen, other.seen, strict=True))
    jumps = sum(step.changed < 60 for step in one.seen)
    assert jumps >= n_jumps
    assert any(step.looked_at < 1500 for step in one.seen)


def rng_rows(rng, data) -> torch.Tensor:
    return torch.from_numpy(rng.integers(data.n_rows, size=1))


@pytest.mark.long
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_many_runs(course, kind, dtype):
    for seed in range(100, 160):
        check(course, *problem(kind, seed, dtype, most=200))
        check(course, *problem(kind, seed, dtype, directions=kind is not line, most=200))
