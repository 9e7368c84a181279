"""Splits keep the moments of a component, and mergers are those that cost least."""

import numpy as np
import pytest
import torch

from lloydformer.circuits.mixture import MixtureKind
from lloydformer.plans.mixture import Components
from lloydformer.solving.mixture_search import merge_down, split

KINDS = ("full", "tied", "diag", "spherical")


def some(kind, k=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(k, d, d))
    full = torch.tensor(a @ a.transpose(0, 2, 1) + np.eye(d))
    own = {"full": full, "tied": full[0], "diag": full.diagonal(dim1=1, dim2=2)}
    covariances = own.get(kind, full[:, 0, 0]).clone()
    weights = torch.tensor(rng.dirichlet(np.ones(k)))
    means = torch.tensor(rng.normal(size=(k, d)) * 50)
    return Components.create(MixtureKind(kind), weights.log(), means, covariances)


def second_moments(components):
    """The second moments of the whole mixture: their trace for round components."""
    weights, means, own = components.log_weights.exp(), components.means, components.covariances
    if components.kind.covariance == "spherical":
        within = own * means.shape[1]
        return (weights * (within + means.square().sum(dim=1))).sum()
    if components.kind.covariance == "diag":
        return (weights[:, None] * (own + means.square())).sum(dim=0)
    return torch.einsum("k,kpq->pq", weights, own + means[:, :, None] * means[:, None, :])


@pytest.mark.parametrize("longest", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_two_halves_are_the_component(kind, longest):
    before = some(kind)
    twice = split(before, np.random.RandomState(0), longest=longest)
    assert twice.means.shape == (6, 2)
    torch.testing.assert_close(twice.log_weights.exp().sum().item(), 1.0)
    torch.testing.assert_close((twice.means[:3] + twice.means[3:]) / 2, before.means)
    if kind != "tied":  # whose covariance belongs to all components
        torch.testing.assert_close(second_moments(twice), second_moments(before))


@pytest.mark.parametrize("kind", KINDS)
def test_halves_are_merged_again(kind):
    """Components are far apart, so that every half costs least with its other half."""
    before = some(kind)
    found = merge_down(split(before, np.random.RandomState(0), longest=True), 3)
    order = torch.cdist(before.means, found.means).argmin(dim=1)
    torch.testing.assert_close(found.means[order], before.means)
    torch.testing.assert_close(found.log_weights[order], before.log_weights)
    if kind != "tied":
        torch.testing.assert_close(found.covariances[order], before.covariances)


def test_the_pair_that_costs_least_is_merged():
    means = torch.tensor([[0.0, 0.0], [9.0, 0.0], [10.0, 0.0]], dtype=torch.float64)
    found = merge_down(Components.around(MixtureKind("full"), means), 2)
    assert sorted(found.means[:, 0].tolist()) == pytest.approx([0.0, 9.5])
    assert sorted(found.log_weights.exp().tolist()) == pytest.approx([1 / 3, 2 / 3])
