"""Weights, temperatures and distances at the ends of their range: finite, and as in float64."""

import numpy as np
import pytest
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import Native, instruction_set
from lloydformer.plans.assign import NearestDistances, NearestSums
from lloydformer.plans.relocating import NoiseDraws, Relocation
from lloydformer.plans.robust import HighestScores, RobustSums, SoftmaxWeights
from lloydformer.plans.soft import SoftSums

pytestmark = pytest.mark.skipif(
    instruction_set() is None, reason="the kernels of the native engine were not built here"
)


def test_the_best_point_of_a_steep_cluster_counts_fully():
    """Its score is its level, also where both are rounded by more than 1."""
    points = torch.tensor([[0.7], [3.1], [40.3], [47.9]], dtype=torch.float64)
    origin = torch.tensor([24.0], dtype=torch.float64)
    with Native().open(TensorBlocks(points, given_origin=origin)) as session:
        session.fold(NearestDistances(torch.tensor([[-21.0], [19.0]], dtype=torch.float64)))
        for gamma in (1e-3, 1e15, 1e19, 1e30):
            best, masses = session.fold(HighestScores(gamma, 2))
            assert masses.tolist() == [1.0, 1.0]
            everywhere = torch.full((2,), torch.inf, dtype=torch.float64)
            _, weights, _, _ = session.fold(RobustSums(SoftmaxWeights(gamma, best, everywhere), 2))
            assert ((weights >= 1) & (weights <= 2)).all(), (gamma, weights)


def test_points_on_a_center_share_it_at_any_temperature():
    """0 times a number that float32 cannot hold."""
    points = torch.tensor([[1.0, 2.0]] * 5)
    with Native().open(TensorBlocks(points)) as session:
        centers = session.gather(torch.tensor([0, 0]))
        level, sums, masses, energy, _ = session.fold(SoftSums(centers, 1e300))
    assert (level.exp() * masses).tolist() == pytest.approx([2.5, 2.5])
    assert torch.equal(sums, torch.zeros(2, 2, dtype=torch.float64))
    assert abs(energy) < 1e-299


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cluster_that_loses_a_heavy_point_keeps_its_digits(dtype):
    """Sums are updated from one iteration to the next; what is left must not be rounding."""
    points = torch.tensor([[1.0], [2.0], [4.0], [50.0]], dtype=dtype)
    weights = torch.tensor([0.3, 0.7, 1e20, 0.1], dtype=torch.float64)
    data = TensorBlocks(points, weights, given_origin=torch.zeros(1, dtype=dtype))
    with Native().open(data) as session:
        session.fold(NearestSums(torch.tensor([[1.0], [50.0]], dtype=dtype)))
        sums, masses, changed = session.fold(NearestSums(torch.tensor([[0.0], [6.0]], dtype=dtype)))
    assert changed == 1
    assert masses[0].item() == pytest.approx(1.0, rel=1e-9)
    assert sums[0].item() == pytest.approx(1.7, rel=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_relocations_with_weights_that_rounding_loses(dtype):
    rng = np.random.default_rng(0)
    for seed in range(150):
        x = torch.from_numpy(rng.normal(size=(40, 2))).to(dtype)
        w = torch.from_numpy(10.0 ** rng.uniform(-30, 30, size=40) * (rng.random(40) < 0.5))
        data = TensorBlocks(x, w)
        with Native().open(data) as session:
            centers = session.gather(torch.arange(25)).double()
            done = session.run(Relocation(centers, 4, NoiseDraws(seed, 0, 3)))
        assert torch.isfinite(done.centers).all()
