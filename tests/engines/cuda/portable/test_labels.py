"""Copies in float16, the bound of their error, and what is left to float64."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton", reason="needs Triton: pip install lloydformer[gpu-test]")

import triton
import triton.language as tl
from portable_problems import Sizes, Truth
from triton_interpreter import DEVICE

from lloydformer.engines.cuda.lloyd_state import LloydState
from lloydformer.engines.cuda.portable.labels import bound_center, bound_row
from lloydformer.engines.cuda.portable.lloyd import PortableLloyd


@pytest.mark.parametrize(
    "sizes",
    [Sizes(65, 17, 1), Sizes(7, 70, 1, torch.float64, shift=1e4), Sizes(33, 3, 1, scale=1e-20)],
    ids=str,
)
def test_copies_and_the_errors_that_were_made(sizes):
    points = sizes.points()
    arrays = PortableLloyd(points, sizes.state(points))._arguments
    scaled = (points.rows - points.origin).double() * points.half_unit
    assert scaled.abs().max() <= 2**15
    copy = arrays["half"][:, : sizes.d]
    assert torch.equal(copy, scaled.half())
    assert arrays["half"][:, sizes.d :].count_nonzero() == 0
    residuals = scaled - copy.double()
    for found, rows in ((arrays["norms"], scaled), (arrays["residuals"], residuals)):
        excess = found.double() / rows.norm(dim=1)
        assert excess.min() > 1 + 1e-7
        assert excess.max() < 1 + 2e-6


def queued(x: np.ndarray, centers: np.ndarray) -> tuple[int, int]:
    """How many rows were decided among few and among all centers; checks the labels."""
    sizes = Sizes(*x.shape, len(centers))
    points = sizes.points()
    points.rows.copy_(torch.from_numpy(x))
    points = dataclasses.replace(points, reach=float(abs(x).max()))
    state = LloydState(points, len(centers))
    state.begin(torch.from_numpy(centers), 0.0)
    lloyd = PortableLloyd(points, state)
    lloyd.assign()
    assert state.assigned.tolist() == Truth(points, centers).squares().argmin(1).tolist()
    few, many, _ = lloyd._arguments["queued"].tolist()
    return few, many


def test_rows_near_one_center_are_not_decided_again():
    centers = np.array([[i, j] for i in range(-4, 4) for j in range(-4, 4)], dtype=float)
    assert queued(np.repeat(centers, 2, 0) + 0.1, centers) == (0, 0)


def test_rows_between_two_centers_are_decided_among_few():
    centers = np.array([[i, j] for i in range(-4, 4) for j in range(-4, 4)], dtype=float)
    between = np.stack([centers[:, 0] + 0.5, centers[:, 1] + 0.1], 1)
    assert queued(between, centers) == (56, 0)  # the others have no center on their far side


@pytest.mark.parametrize("n_near", [3, 4])
def test_rows_between_many_centers_are_decided_among_all(n_near):
    around = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=float)[:n_near]
    x = np.array([[-1e-4, 0], [0, 1e-4], [8, 8], [9, 9], [0, 0]])
    assert queued(x, np.concatenate([around, [[9, 9]]])) == (0, 3)


@pytest.mark.parametrize(("n_tiles", "expected"), [(2, (16, 0)), (3, (0, 16))])
def test_near_centers_in_the_same_column_of_several_tiles(n_tiles, expected):
    width = 128 if DEVICE == "cuda" else 16  # of a tile, if there are more centers
    apart = np.array([[i, j] for i in range(-8, 8) for j in range(-4, 4)], dtype=float)[:width]
    near = np.arange(n_tiles)[:, None] * [2.0**-18, 0]
    centers = (near[:, None] + apart).reshape(-1, 2)
    x = np.random.default_rng(0).choice(centers, 16) + np.array([0, 0.25])
    assert queued(x, centers) == expected


def test_four_near_centers_in_two_columns_of_two_tiles():
    width = 128 if DEVICE == "cuda" else 16
    apart = np.array([[i, j] for i in range(-8, 8) for j in range(-4, 4)], dtype=float)
    columns = np.repeat(apart[: width // 2], 2, 0) + np.resize([[0, 0], [0, 2.0**-18]], (width, 2))
    centers = np.concatenate([columns, columns + np.array([2.0**-18, 0])])
    random = np.random.default_rng(0)
    x = random.choice(centers, 40) + random.choice([-0.25, 0.25], (40, 2))
    assert queued(x, centers) == (40, 0)


def test_data_far_from_its_origin_are_decided_in_float64():
    generator = np.random.default_rng(0)
    x = (generator.normal(size=(65, 3)) + 1e4).astype(np.float32)
    assert sum(queued(x, x[:5].astype(float))) > 32


def test_a_far_row_and_a_far_center_leave_the_bounds_of_others_alone():
    centers = np.array([[i, j] for i in range(-4, 4) for j in range(-4, 4)], dtype=float)
    x = np.repeat(centers, 2, 0) + 0.1
    far = np.array([[3e4, 1e4]])
    assert queued(np.concatenate([x, far]), np.concatenate([centers, far])) == (0, 0)


@pytest.mark.parametrize("spread", [1.0, 2.0, 3.0])
def test_few_rows_with_heavy_tails_are_decided_again(spread):
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(300, 8)) * np.exp(spread * rng.normal(size=(300, 1)))).astype(np.float32)
    few, many = queued(x, x[:40].astype(float))
    assert few + many < 10


@pytest.mark.parametrize("far", [1e6, 1e15, 1e25])
def test_a_center_that_is_out_of_range(far):
    """Its copy is far off, or its square overflows: no score may rule out another center."""
    x = np.random.default_rng(0).normal(size=(65, 3)).astype(np.float32)
    queued(x, np.concatenate([[[far, -far, 1.0]], x[:20].astype(float)]))


@triton.jit
def bounds(norms, residuals, found, ratio, padded, CODES: tl.constexpr):
    row, center = tl.load(norms), tl.load(norms + 1)
    tl.store(found, bound_row(row, tl.load(residuals), ratio, padded, CODES))
    tl.store(found + 1, bound_center(center, tl.load(residuals + 1), ratio, padded, CODES))


def bound_pair(x: np.ndarray, c: np.ndarray, ratio: float, codes: int) -> tuple[float, float]:
    """The bounds row(x) and center(c)."""
    up = 1.000001
    norms, residuals, found = (
        torch.tensor(v, dtype=torch.float32, device=DEVICE)
        for v in (
            [np.linalg.norm(x) * up, np.linalg.norm(c) * up],
            [np.linalg.norm(v - halved(v).astype(float)) * up for v in (x, c)],
            [0.0, 0.0],
        )
    )
    bounds[(1,)](norms, residuals, found, ratio, -(-len(x) // 16) * 16, CODES=codes)
    row, center = found.tolist()
    return row, center


def halved(x: np.ndarray) -> np.ndarray:
    return np.clip(x, -65504, 65504).astype(np.float16)


def score_in_half(x: np.ndarray, c: np.ndarray, lift: float, order: np.ndarray, code: int) -> float:
    """x.c - |c|^2 / 2 + lift as `assign` computes it, adding up in this order, in float32."""
    total = np.zeros(1, np.float32)
    for f in order:
        total += halved(x)[f].astype(np.float32) * halved(c)[f].astype(np.float32)
    total -= np.float32(np.square(c).sum() / 2 - lift)
    return float(((total.view(np.int32) & -16) | code).view(np.float32)[0])


coordinates = st.floats(-(2.0**15), 2.0**15) | st.floats(-1e-3, 1e-3) | st.floats(-1e-9, 1e-9)


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(1, 40), st.integers(0, 15), st.sampled_from([0.125, 0.6, 1.0]))
def test_the_bound_holds(data, d, code, ratio):
    drawn = st.lists(coordinates, min_size=d, max_size=d)
    x, c = np.array(data.draw(drawn)), np.array(data.draw(drawn))
    if data.draw(st.booleans()):
        c += x  # large scores that nearly cancel
    order = np.array(data.draw(st.permutations(range(d))))
    row, center = bound_pair(x, c, ratio, 16)
    found = np.longdouble(score_in_half(x, c, center, order, code)) - center
    exact = (c * np.longdouble(1)) @ x - np.square(c.astype(np.longdouble)).sum() / 2
    assert abs(found - exact) <= row + center


def truncated(x: float) -> float:
    """x with the 24 bits of float32, rounded towards 0 as accumulators of tensor cores may do."""
    return (np.array([x]).view(np.int64) & -(1 << 29)).view(np.float64)[0]


def test_the_bound_holds_for_accumulators_that_truncate():
    d, x, c = 1024, 1 + 63 / 1024, 1 + 65 / 1024  # exact in float16; x c has 21 bits
    total = 0.0
    for _ in range(d):
        total = truncated(total + x * c)
    error = abs(total - d * x * c)
    assert error > 1e-5 * d  # every addition loses something
    assert error <= sum(bound_pair(np.full(d, x), np.full(d, c), 1.0, 16))


def test_the_bound_is_not_far_too_large():
    """Errors of rounding add up at random: the bound is some 10 times what is seen."""
    generator = np.random.default_rng(0)
    x, centers = generator.normal(size=64) * 1000, generator.normal(size=(16, 64)) * 1000
    errors, order = [], np.arange(64)
    for code, c in enumerate(centers):
        errors.append(abs(score_in_half(x, c, 0.0, order, code) - (c @ x - np.square(c).sum() / 2)))
    assert 2 * max(errors) < sum(bound_pair(x, centers[0], 1.0, 16)) < 50 * max(errors)
