"""Means of clusters, with a fallback for clusters without mass."""

import pytest
import torch

from lloydformer.numerics.means import means_or

SUMS = torch.tensor([[2.0, 4.0], [0.0, 0.0], [-3.0, 9.0]])
MASSES = torch.tensor([2.0, 0.0, 3.0])
OTHERWISE = torch.tensor([[7.0, 7.0], [8.0, 9.0], [7.0, 7.0]])
EXPECTED = torch.tensor([[1.0, 2.0], [8.0, 9.0], [-1.0, 3.0]])


@pytest.mark.parametrize("batch", [(), (4,), (2, 3)], ids=str)
def test_by_hand_for_any_batch_axes(batch):
    parts = [part.expand(*batch, *part.shape) for part in (SUMS, MASSES, OTHERWISE)]
    found = means_or(*parts)
    assert torch.equal(found, EXPECTED.expand(*batch, 3, 2))


def test_problems_of_a_batch_do_not_affect_each_other():
    generator = torch.Generator().manual_seed(0)
    sums, otherwise = torch.randn(2, 5, 4, 3, generator=generator).unbind()
    masses = torch.randint(0, 3, (5, 4), generator=generator).float()
    together = means_or(sums, masses, otherwise)
    for problem in range(5):
        assert torch.equal(together[problem], means_or(sums[problem], masses[problem],
                                                       otherwise[problem]))  # fmt: skip


def test_fractions_of_mass_divide_too():
    found = means_or(torch.tensor([[0.5]]), torch.tensor([0.25]), torch.tensor([[9.0]]))
    assert found.item() == 2.0


@pytest.mark.parametrize("masses", [torch.zeros(3), torch.full((3,), 1e-30)])
def test_the_result_is_finite_for_no_mass_and_for_tiny_masses(masses):
    assert torch.isfinite(means_or(torch.zeros(3, 2), masses, OTHERWISE)).all()
