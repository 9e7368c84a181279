"""Many centers of many features: labels are searched tile by tile, and by several threads."""

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native, instruction_set
from lloydformer.plans.assign import NearestDistances, NearestSums

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)
DTYPES = [torch.float32, torch.float64]


def problem(n: int, d: int, k: int, dtype, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Points near centers; some on a center that is there twice; in float32 some between two."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    centers[k // 2] = centers[k // 3]
    points = centers[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    points[::7] = centers[k // 2]
    if dtype == torch.float32:  # float64 decides them
        points[::5] = (centers[0] + centers[-1]) / 2
    return torch.from_numpy(points).to(dtype), torch.from_numpy(centers).to(dtype)


def exactly(points: torch.Tensor, centers: torch.Tensor) -> np.ndarray:
    rows, middles = points.double(), centers.double()
    squares = torch.stack([(rows - c).square().sum(dim=1) for c in middles], dim=1)
    return squares.numpy().argmin(axis=1)


def folded(points: torch.Tensor, centers: torch.Tensor, fold, leaf: int = 8192, **engine):
    """The labels, and the summary of a fold."""
    blocks = TensorBlocks(points, leaf=leaf, given_origin=torch.zeros_like(points[0]))
    with Native(**engine).open(blocks) as session:
        summary = session.fold(fold(centers))
        return session.labels().numpy().copy(), [np.asarray(part) for part in summary]


@pytest.mark.parametrize("fold", [NearestSums, NearestDistances])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
@pytest.mark.parametrize("shape", [(203, 1000, 300), (150, 201, 9), (64, 801, 17), (5, 400, 3)])
def test_labels_are_those_of_float64(shape, isa, dtype, fold):
    try:
        Native(instruction_set=isa)
    except ValueError:
        pytest.skip(f"this machine has no {isa}")
    points, centers = problem(*shape, dtype)
    labels, _ = folded(points, centers, fold, instruction_set=isa)
    np.testing.assert_array_equal(labels, exactly(points, centers))


@pytest.mark.parametrize("shape", [(700, 300, 1100), (4500, 40, 60)])
def test_several_tiles_and_threads_give_the_same_bits(shape):
    points, centers = problem(*shape, torch.float32)
    expected = exactly(points, centers)
    for fold in (NearestSums, NearestDistances):
        found = [folded(points, centers, fold, 1 << 16, n_threads=threads) for threads in (1, 2, 5)]
        for labels, summary in found:
            np.testing.assert_array_equal(labels, expected)
            for part, other in zip(summary, found[0][1], strict=True):
                np.testing.assert_array_equal(part, other)
