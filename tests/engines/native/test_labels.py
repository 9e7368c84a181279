"""Labels are those of float64 arithmetic by differences, the first of equals, also in float32."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native, instruction_set
from lloydformer.plans.assign import NearestDistances, NearestSums

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
DTYPES = [torch.float32, torch.float64]


def exactly(data: TensorBlocks, centers: torch.Tensor) -> np.ndarray:
    """The nearest center of each row by differences in float64; argmin takes the first.

    Rows less the origin are not rounded to their own precision.
    """
    rows = data.points.double() - data.origin.double()
    return _nearest(*(t.double().numpy() for t in (rows, centers)))


def _nearest(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    parts = np.array_split(rows, -(-len(rows) // 1000))
    return np.concatenate(
        [np.square(part[:, None] - centers).sum(axis=-1).argmin(axis=1) for part in parts]
    )


def in_whole_numbers(data: TensorBlocks, centers: torch.Tensor) -> np.ndarray:
    """The same in integers, for points and centers that are whole: nothing is rounded."""
    return _nearest(*(t.long().numpy() for t in (data.read(0, data.n_rows).points, centers)))


def to_input_kind(data: TensorBlocks, centers: torch.Tensor) -> np.ndarray:
    """The same by the numbers that a user has, before the origin is subtracted."""
    given = (centers.double() + data.origin.double()).to(data.dtype)
    return _nearest(*(t.double().numpy() for t in (data.points, given)))


def labelled(data: TensorBlocks, centers: torch.Tensor) -> list[np.ndarray]:
    """By both folds that label."""
    found = []
    for fold in (NearestSums(centers), NearestDistances(centers)):
        with Native().open(data) as session:
            session.fold(fold)
            found.append(session.labels().numpy())
    return found


def check(points: np.ndarray, centers: np.ndarray, dtype, truth=exactly) -> None:
    """Points and centers as a user has them."""
    data = TensorBlocks(torch.from_numpy(points).to(dtype))
    seen = data.layout.to_row_units(torch.from_numpy(centers).to(dtype)).to(dtype).contiguous()
    expected = truth(data, seen)
    for labels in labelled(data, seen):
        np.testing.assert_array_equal(labels, expected)


def shape(rng) -> tuple[int, int, int]:
    return int(rng.integers(1, 300)), int(rng.integers(1, 40)), int(rng.integers(1, 40))


seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e4, 1e6])
@given(seed=seeds)
def test_data_far_from_zero(dtype, shift, seed):
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    check(rng.normal(size=(n, d)) + shift, rng.normal(size=(k, d)) + shift, dtype)


def on_bisectors(rng, centers: np.ndarray, n: int) -> np.ndarray:
    """The middle of two centers plus a vector at right angles to their difference; the centers."""
    one, two = centers[rng.integers(len(centers), size=(2, n))]
    apart, aside = one - two, rng.normal(size=one.shape)
    length = np.square(apart).sum(axis=1, keepdims=True)
    along = (aside * apart).sum(axis=1, keepdims=True) / np.where(length > 0, length, 1)
    return np.concatenate([(one + two) / 2 + (aside - along * apart) / 10, centers])


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e4, 1e6])
@given(seed=seeds)
def test_points_on_bisectors(shift, seed):
    """Rounded to float32 they are a little nearer to one of the two."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    centers = (rng.normal(size=(k, d)) + shift).astype(np.float32).astype(np.float64)
    check(on_bisectors(rng, centers, n), centers, torch.float32)


@pytest.mark.parametrize("shift", [1e4, 1e6])
@given(seed=seeds)
def test_points_on_bisectors_by_the_numbers_as_given(shift, seed):
    """Far from zero, where the origin is subtracted without rounding."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    centers = (rng.uniform(-4, 4, size=(k, d)) + shift).astype(np.float32).astype(np.float64)
    check(on_bisectors(rng, centers, n), centers, torch.float32, to_input_kind)


def with_heavy_tails(rng, n: int, d: int, spread: float) -> np.ndarray:
    """Rows of a normal distribution, each times another number."""
    return rng.normal(size=(n, d)) * np.exp(spread * rng.normal(size=(n, 1)))


def check_to_rounding(points: np.ndarray, centers: np.ndarray, dtype) -> None:
    """No other center is nearer by more than the rounding of float64, in extended precision."""
    data = TensorBlocks(torch.from_numpy(points).to(dtype))
    seen = data.layout.to_row_units(torch.from_numpy(centers).to(dtype)).to(dtype).contiguous()
    exact = data.points.double() - data.origin.double()
    rows, at = (t.numpy().astype(np.longdouble) for t in (exact, seen))
    squares = np.square(rows[:, None] - at).sum(axis=-1)
    most = squares.min(axis=1) * (1 + 4 * points.shape[1] * np.finfo(np.float64).eps)
    for labels in labelled(data, seen):
        assert (squares[np.arange(len(rows)), labels] <= most).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("spread", [1.0, 3.0, 6.0])
@given(seed=seeds)
def test_heavy_tails(dtype, spread, seed):
    """The bound of the rounding error of a row and a center does not depend on others."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    points = with_heavy_tails(rng, n + k, d, spread)
    near = points[:k] * (1 + 1e-6 * rng.normal(size=(k, d)))  # nearly equal centers, too
    centers = np.concatenate([points[:k], near])
    check_to_rounding(np.concatenate([points, on_bisectors(rng, centers, n)]), centers, dtype)


@pytest.mark.parametrize("d", [40, 300])
def test_heavy_tails_in_tiles(d):
    """More centers and features than stay in the caches, where centers are compared in tiles."""
    rng = np.random.default_rng(d)
    points = with_heavy_tails(rng, 400, d, 2.0)
    centers = points[:80].astype(np.float32).astype(np.float64)
    rows = np.concatenate([points, on_bisectors(rng, centers, 100)])
    check_to_rounding(rows, centers, torch.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(seed=seeds)
def test_duplicate_centers(dtype, seed):
    """The first of equal centers has all of their points."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    centers = rng.normal(size=(k, d))[rng.integers(k, size=k + 3)]
    check(np.concatenate([rng.normal(size=(n, d)), centers]), centers, dtype)


@pytest.mark.parametrize("k", [63, 64, 65, 150])
@pytest.mark.parametrize("d", [3, 16, 37])
def test_ties_among_more_centers_than_a_chunk(d, k):
    """Float64 compares centers in chunks of 64: equal and nearly equal ones in different chunks."""
    rng = np.random.default_rng(d * k)
    some = rng.normal(size=(k // 2, d)).astype(np.float32).astype(np.float64)
    centers = np.concatenate([some, some[::-1], some[: k % 2]])
    centers[::3] = np.nextafter(centers[::3].astype(np.float32), np.float32(9))
    check(on_bisectors(rng, centers, 200), centers, torch.float32)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shift", [0, 10**4, 10**6])
@given(seed=seeds)
def test_whole_numbers(dtype, shift, seed):
    """A grid is full of ties, which integers know without any rounding."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    points = rng.integers(-3, 4, size=(n, d)) + shift
    centers = rng.integers(-3, 4, size=(k, d)) + shift
    check(points.astype(float), centers.astype(float), dtype, in_whole_numbers)


@given(seed=seeds)
def test_points_and_centers_of_very_different_sizes(seed):
    """One center or point that is far away must not hide ties among the near ones."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    points, centers = rng.normal(size=(n, d)), rng.normal(size=(k, d))
    points[rng.integers(n)] *= 1e5
    centers[rng.integers(k)] *= 1e4
    check(points, centers, torch.float32)


def test_many_points_far_from_zero():
    """Of 100,000 points at 10,000, none is labelled otherwise than in float64."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(100_000, 8)) + 1e4
    check(points, points[:50] + 0.1, torch.float32)


def test_the_plain_expansion_mislabels_points():
    """In float32 it mislabels some of these points, so the tests above can fail."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(2, 6)).astype(np.float32)
    middle = np.repeat((centers[:1] + centers[1:]) / 2, 200, axis=0)
    points = torch.from_numpy(middle + rng.normal(size=(200, 6)).astype(np.float32) * 1e-7)
    data, seen = TensorBlocks(points, given_origin=torch.zeros(6)), torch.from_numpy(centers)
    plain = data.read(0, 200).scores(seen).argmin(dim=1).numpy()
    assert (plain != exactly(data, seen)).any()


@pytest.mark.long
@settings(max_examples=800)
@given(seed=seeds, shift=st.sampled_from([0.0, 1e4, 1e6]))
def test_many_near_ties(seed, shift):
    """Points a rounding or so away from the middle of the two centers next to them."""
    rng = np.random.default_rng(seed)
    n, d, k = shape(rng)
    centers = (rng.normal(size=(k, d)) + shift).astype(np.float32).astype(np.float64)
    one, two = centers[rng.integers(k, size=(2, n))]
    points = ((one + two) / 2).astype(np.float32)
    up = np.nextafter(points, np.float32(np.inf))
    check(
        np.where(rng.random(points.shape) < 0.3, up, points).astype(float), centers, torch.float32
    )
