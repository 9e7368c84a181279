"""One layer: its tokens by hand, its tolerance for rounded memberships."""

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.layer import LayerContext

POINTS = torch.tensor([[-4.0], [-2.0], [2.0], [4.0]])
CENTERS = torch.tensor([[-3.0], [0.5]])


def one_layer(recipe, points, centers):
    circuit = lf.Circuit(recipe, n_features=1, n_clusters=2)
    x, c, origin = circuit.embed(points, centers)
    assert not origin.any()
    return circuit.layers[0](x, c, LayerContext())


def test_plain_tokens_by_hand():
    """-4 and -2 are nearest to -3, and 2 and 4 to 0.5: the new centers are -3 and 3."""
    encoder, decoder = one_layer(lf.recipes.lloyd(), POINTS, CENTERS)
    assert encoder.tolist() == [[-4, 1, 0], [-2, 1, 0], [2, 0, 1], [4, 0, 1]]
    assert decoder.tolist() == [[-3, 1, 0], [3, 0, 1]]


def test_lifted_tokens_by_hand():
    """Position, squared norm, half, code: all four are correct for the new centers."""
    encoder, decoder = one_layer(lf.recipes.lloyd_dot(), POINTS, CENTERS)
    assert encoder.tolist() == [
        [-4, 16, -0.5, 1, 0], [-2, 4, -0.5, 1, 0], [2, 4, -0.5, 0, 1], [4, 16, -0.5, 0, 1],
    ]  # fmt: skip
    assert decoder.tolist() == [[-3, 9, -0.5, 1, 0], [3, 9, -0.5, 0, 1]]


def test_affinity_by_hand():
    """-|x - c|^2 + 2 delta for the own cluster, with delta = 7; the codes of centers stay."""
    recipe = lf.recipes.robust_lifted(separation=7.0)
    encoder, decoder = one_layer(recipe, POINTS, CENTERS)
    assert encoder[:, 5:].tolist() == [
        [-1 + 14, -20.25], [-1 + 14, -6.25], [-25, -2.25 + 14], [-49, -12.25 + 14],
    ]  # fmt: skip
    assert decoder[:, 5:].tolist() == [[1, 0], [0, 1]]


def test_memberships_of_duplicates_may_be_rounded():
    """49 copies of 1/49 do not sum to 1: an exact maximum would drop those points."""
    points = torch.tensor([[0.0]] * 49 + [[8.0]] * 3 + [[100.0]], dtype=torch.float64)
    assert sum([1 / 49] * 49) != 1
    circuit = lf.Circuit(lf.recipes.lloyd("average"), n_features=1, n_clusters=2)
    trace = circuit(points, points[[0, -1]], 3)
    torch.testing.assert_close(trace.centers[3, 0, 0].item(), 24 / 52)


@pytest.mark.parametrize("make", [lf.recipes.lloyd, lf.recipes.lloyd_dot])
@pytest.mark.parametrize(("aside", "shares"), [(0.0, [0.5, 0.5]), (1e-9, [0, 1]), (-1e-9, [1, 0])])
def test_a_point_midway_is_split_in_spite_of_rounding(make, aside, shares):
    """0.2 lies midway between 0.1 and 0.3; in floating point it is nearer to the latter."""
    assert (0.2 - 0.1) ** 2 > (0.3 - 0.2) ** 2
    points = torch.tensor([[0.0], [0.1], [0.2 + aside], [0.3]], dtype=torch.float64)
    circuit = lf.Circuit(make("average"), n_features=1, n_clusters=2)
    trace = circuit(points, points[[1, 3]], 1)
    assert trace.assignments[0, 2].tolist() == shares
