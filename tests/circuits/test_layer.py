"""One layer: its tokens by hand, its tolerance for rounded memberships, hooks on its modules."""

import pytest
import torch
from torch import nn

import lloydformer as lf
from lloydformer.circuits import recipes
from lloydformer.circuits.heads import Attention
from lloydformer.circuits.layer import LayerContext
from lloydformer.circuits.recombining import recombining

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
        [-4, 16, -0.5, 1, 0],
        [-2, 4, -0.5, 1, 0],
        [2, 4, -0.5, 0, 1],
        [4, 16, -0.5, 0, 1],
    ]
    assert decoder.tolist() == [[-3, 9, -0.5, 1, 0], [3, 9, -0.5, 0, 1]]


def test_affinity_by_hand():
    """-|x - c|^2 + 2 delta for the own cluster, with delta = 7; the codes of centers stay."""
    recipe = lf.recipes.robust_lifted(separation=7.0)
    encoder, decoder = one_layer(recipe, POINTS, CENTERS)
    assert encoder[:, 5:].tolist() == [
        [-1 + 14, -20.25],
        [-1 + 14, -6.25],
        [-25, -2.25 + 14],
        [-49, -12.25 + 14],
    ]
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


def run_once(make):
    """Return a circuit of one layer, its points and centers."""
    circuit = lf.Circuit(make(), n_features=1, n_clusters=2)
    points = torch.tensor([[-1.0], [1.0], [1.0], [-1.0], [1.0]], dtype=torch.float64)
    return circuit, points, points[:2].clone()


@pytest.mark.parametrize("make", [*recipes.MAKERS.values(), recombining], ids=lambda m: m.__name__)
def test_a_forward_hook_fires_on_every_module(make):
    """Also on a whole head: its hook sees what passes through the head's point `output`."""
    circuit, points, centers = run_once(make)
    outputs: dict[str, list[object]] = {}
    for name, module in circuit.layers[0].named_modules():
        if not isinstance(module, nn.ModuleList | nn.ModuleDict):
            seen = outputs.setdefault(name, [])
            module.register_forward_hook(lambda m, i, output, seen=seen: seen.append(output))
    circuit(points, centers, n_layers=1, seed=0)
    assert [name for name, seen in outputs.items() if len(seen) != 1] == []
    for name, module in circuit.layers[0].named_modules():
        if isinstance(module, Attention):
            assert outputs[name][0] is outputs[f"{name}.output"][0]


@pytest.mark.parametrize("make", [lf.recipes.lloyd, lf.recipes.soft], ids=["hard", "soft"])
def test_a_hook_on_a_head_may_replace_its_output(make):
    """Swapped assignments swap the new centers."""
    circuit, points, centers = run_once(make)
    before = circuit(points, centers, n_layers=1).centers[1]

    def swap(module, inputs, output):
        return torch.cat([output[..., :1], output[..., 1:].flip(-1)], dim=-1)

    with circuit.layers[0].encoder_cross.register_forward_hook(swap):
        after = circuit(points, centers, n_layers=1).centers[1]
    torch.testing.assert_close(after, before.flip(0))
    assert not torch.equal(after, before)
