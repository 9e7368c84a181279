"""LayerNorm and RMSNorm, against PyTorch's, and the isometry that LayerNorm needs."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from lloydformer.circuits.norms import LayerNorm, RMSNorm, zero_sum


@pytest.mark.parametrize("d", [2, 3, 32])
@pytest.mark.parametrize("epsilon", [0.0, 1e-5, 0.3])
def test_norms_equal_pytorchs_with_gain_one_over_root_d(d, epsilon, rng):
    rows = torch.tensor(rng.normal(size=(2, 7, d)))
    gain = torch.full((d,), d**-0.5, dtype=torch.float64)
    torch.testing.assert_close(RMSNorm(epsilon)(rows), F.rms_norm(rows, (d,), gain, epsilon))
    torch.testing.assert_close(
        LayerNorm(epsilon)(rows), F.layer_norm(rows, (d,), gain, eps=epsilon)
    )


def test_rms_by_hand():
    torch.testing.assert_close(RMSNorm()(torch.tensor([[3.0, -4.0]])), torch.tensor([[0.6, -0.8]]))


def test_layer_norm_by_hand():
    """4, 10, 1 less their mean 5: -1, 5, -4, of length sqrt(42)."""
    expected = torch.tensor([[-1.0, 5.0, -4.0]]) / 42**0.5
    torch.testing.assert_close(LayerNorm()(torch.tensor([[4.0, 10.0, 1.0]])), expected)


def test_lem_lnorm_zero_sum_vectors_become_unit_vectors(rng):
    rows = zero_sum(torch.tensor(rng.normal(size=(20, 5))))
    expected = F.normalize(rows, dim=-1)
    torch.testing.assert_close(LayerNorm()(rows), expected)
    torch.testing.assert_close(RMSNorm()(rows), expected)


@pytest.mark.parametrize("norm", [RMSNorm(), LayerNorm()])
def test_the_norm_of_a_zero_vector_is_nan(norm):
    assert norm(torch.zeros(1, 3)).isnan().all()


@given(st.integers(1, 12), st.integers(0, 99))
def test_zero_sum_is_an_isometry_into_zero_sum_vectors(d, seed):
    rows = torch.randn(6, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    moved = zero_sum(rows)
    assert moved.shape == (6, d + 1)
    torch.testing.assert_close(moved.sum(dim=-1), torch.zeros(6, dtype=torch.float64))
    torch.testing.assert_close(moved @ moved.mT, rows @ rows.mT)


def test_zero_sum_by_hand():
    """The rows of its matrix for d = 2: (1, -1, 0) / sqrt 2 and (1, 1, -2) / sqrt 6."""
    basis = zero_sum(torch.eye(2, dtype=torch.float64))
    expected = torch.tensor([[1.0, -1, 0], [1, 1, -2]], dtype=torch.float64)
    torch.testing.assert_close(basis, expected / torch.tensor([[2.0], [6.0]]).double().sqrt())
