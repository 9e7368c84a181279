"""Patches act in the layers that they name, and only while they last."""

import copy
import pickle

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.subspaces import POSITION

POINTS = torch.tensor([[0.0], [1.0], [10.0], [12.0]])


@pytest.fixture
def circuit():
    return lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)


def test_one_layer_of_several_is_patched(circuit):
    """Layers share a module; only the second one has its attention swapped."""
    plain = circuit(POINTS, POINTS[:2], 3)
    with circuit.patch("layers.1.encoder_cross.attention", lambda a: a.flip(-1)):
        patched = circuit(POINTS, POINTS[:2], 3)
    assert torch.equal(patched.assignments[0], plain.assignments[0])
    assert torch.equal(patched.assignments[1], plain.assignments[1].flip(-1))
    assert torch.equal(patched.centers[2], plain.centers[2].flip(0))
    assert torch.equal(circuit(POINTS, POINTS[:2], 3).centers, plain.centers)


def test_a_tensor_replaces_the_value(circuit):
    everyone = torch.tensor([[1, 0]]).expand(4, 2)
    with circuit.patch("layers.0.encoder_cross.attention", everyone):
        trace = circuit(POINTS, POINTS[:2], 1)
    assert trace.centers[1, 0].tolist() == [5.75]


def test_a_pattern_patches_every_match(circuit):
    with circuit.patch("layers.*.encoder_self.attention", torch.zeros_like):
        trace = circuit(POINTS, POINTS[:2], 2, keep="*.encoder_self.attention")
    assert not any(value.any() for value in trace.kept.values())


def test_patches_apply_in_order_and_the_trace_keeps_the_result(circuit):
    name = "layers.0.decoder_tokens"
    with circuit.patch(name, lambda t: t + 1), circuit.patch(name, lambda t: 2 * t):
        trace = circuit(POINTS, POINTS[:2], 1, keep=name)
    unpatched = circuit(POINTS, POINTS[:2], 1, keep=name)
    assert torch.equal(trace[name], 2 * (unpatched[name] + 1))


def test_two_tensors_under_one_name_come_off_in_turn(circuit):
    name = "layers.0.encoder_cross.attention"
    ones, others = (torch.tensor([row]).expand(4, 2) for row in ([1.0, 0.0], [0.0, 1.0]))
    with circuit.patch(name, ones):
        with circuit.patch(name, others):
            assert circuit(POINTS, POINTS[:2], 1).labels.tolist() == [[1, 1, 1, 1]]
        assert circuit(POINTS, POINTS[:2], 1).labels.tolist() == [[0, 0, 0, 0]]
    assert circuit(POINTS, POINTS[:2], 1).labels.tolist() == [[0, 1, 1, 1]]


def test_copies_are_not_patched(circuit):
    with circuit.patch("layers.0.encoder_cross.attention", lambda a: a.flip(-1)):
        copied = copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit))
    plain = circuit(POINTS, POINTS[:2], 1).centers
    assert all(torch.equal(one(POINTS, POINTS[:2], 1).centers, plain) for one in copied)


def test_a_patch_is_not_undone_by_logarithms():
    """A center far from all points moves by the logarithms of its shares, unless patched."""
    circuit = lf.Circuit(lf.recipes.soft(), n_features=1, n_clusters=2)
    far = torch.tensor([[0.0], [40.0]])
    with circuit.patch("layers.0.encoder_cross.attention", lambda a: a + torch.tensor([0, 1e-4])):
        trace = circuit(POINTS, far, 1)
    assert trace.centers[1, 1].item() == pytest.approx(5.75)
    assert circuit(POINTS, far, 1).centers[1, 1].item() == pytest.approx(12.0)


def test_numbers_from_outside_can_be_patched():
    """Without a separation, only a center's nearest point counts as its own."""
    circuit = lf.Circuit(lf.recipes.trimmed(1.0), n_features=1, n_clusters=2)
    with circuit.patch("layers.0.separation", torch.zeros_like):
        trace = circuit(POINTS, POINTS[[0, 3]], 1)
    assert trace.outside[0].separation.item() == 0
    assert not torch.equal(trace.centers, circuit(POINTS, POINTS[[0, 3]], 1).centers)


@pytest.mark.parametrize("new", [torch.zeros(3, 2), lambda t: None, lambda t: t[:1]])
def test_another_shape_is_refused_by_name(circuit, new):
    message = r"patch 'layers.0.decoder_tokens': found .*; pass a tensor of shape \(2, 3\)"
    with circuit.patch("layers.0.decoder_tokens", new), pytest.raises(ValueError, match=message):
        circuit(POINTS, POINTS[:2], 1)


def test_a_name_that_matches_nothing_is_refused(circuit):
    message = r"patch: found 'layers.5.decoder_tokens', which matches none of"
    with (
        circuit.patch("layers.5.decoder_tokens", torch.zeros_like),
        pytest.raises(ValueError, match=message),
    ):
        circuit(POINTS, POINTS[:2], 2)


def test_staged_layers_are_patched_too():
    circuit = lf.Circuit(lf.recipes.relocating(), n_features=1, n_clusters=2)
    kept = {}
    with circuit.patch("layers.0.decoder_next", lambda t: kept.setdefault("next", 0 * t)):
        trace = circuit(POINTS, POINTS[:2], 1, seed=0)
    assert torch.equal(trace.centers[1], trace.origin.expand(2, 1))
    assert circuit.space.read(kept["next"], POSITION).shape == (2, 1)
