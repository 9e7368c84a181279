"""An exchange of medoids: circuit = plain search, draw for draw; the loss never rises."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lloydformer as lf
from lloydformer.algorithms.medoid_search import MedoidSearch
from lloydformer.circuits.relocating import UTILITY


def problem(seed: int) -> tuple[np.ndarray, int, int]:
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(4, 30)), int(rng.integers(1, 5)), int(rng.integers(2, 5))
    return rng.normal(size=(max(n, k + 2), d)), min(k, n - 1), int(rng.integers(1, 4))


def plainly(points, rows, n_draws, n_layers, seed):
    """Medoids and losses before and after each layer."""
    search = MedoidSearch(points)
    search.begin(np.array(rows))
    found = [(search.medoids, search.loss)]
    for layer in range(n_layers):
        search.exchange_once(search.draw(seed, layer, n_draws))
        found.append((search.medoids, search.loss))
    return found


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_three_layers_are_three_exchanges_of_the_plain_search(seed):
    points, k, n_draws = problem(seed)
    circuit = lf.Circuit(lf.recipes.medoids_swap(n_draws), points.shape[1], k)
    trace = circuit(torch.tensor(points), torch.tensor(points[:k]), 3, seed=seed)
    for layer, (rows, loss) in enumerate(plainly(points, range(k), n_draws, 3, seed)):
        np.testing.assert_allclose(trace.centers[layer].numpy(), points[rows], atol=1e-9)
        assert trace.objective[layer].item() == pytest.approx(loss)
    assert (trace.objective.diff() <= 1e-9).all()


def test_medoids_move_at_all():
    points = np.random.default_rng(0).normal(size=(60, 2))
    losses = [loss for _, loss in plainly(points, range(5), 8, 12, 1)]
    circuit = lf.Circuit(lf.recipes.medoids_swap(8), 2, 5)
    trace = circuit(torch.tensor(points), torch.tensor(points[:5]), 12, seed=1)
    np.testing.assert_allclose(trace.objective.numpy(), losses)
    assert losses[-1] < 0.75 * losses[0]


def test_the_table_of_candidates_and_medoids_is_that_of_the_gains():
    """Loss with a candidate, plus the cost of a medoid's removal = loss less the gain."""
    points, k = np.random.default_rng(2).normal(size=(20, 3)), 4
    circuit = lf.Circuit(lf.recipes.medoids_swap(6), 3, k)
    trace = circuit(
        torch.tensor(points), torch.tensor(points[:k]), 1, names_filter=("layers.0.*",), seed=3
    )
    inner = circuit.layers[0].inner
    search = MedoidSearch(points)
    search.begin(np.arange(k))
    candidates = search.draw(3, 0, 6)
    costs = inner.read(trace["layers.0.exchange.utility.next"], UTILITY)[..., 0]  # (6, k)
    added = [np.minimum(search.r, search.distances[x]).sum() for x in candidates]
    table = np.array(added)[:, None] + costs.numpy()
    np.testing.assert_allclose(table, search.loss - search.gains(candidates), atol=1e-9)


def test_settings_outside_their_range_are_refused():
    with pytest.raises(ValueError, match="n_draws: found 0"):
        lf.recipes.medoids_swap(0)
    with pytest.raises(ValueError, match="margin: found 1"):
        lf.recipes.medoids_swap(margin=1.0)
