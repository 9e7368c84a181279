"""Traces: what is kept and how it is named; hooks and patches of intermediates."""

import copy
import pickle

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.activations import LimitingSoftmax
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION

POINTS = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
CENTERS = torch.tensor([[0.0], [1.0]])
HEAD = ("queries", "keys", "scores", "attention", "values", "output")
TOKENS = (
    "encoder_tokens",
    "encoder_residual",
    "encoder_next",
    "decoder_tokens",
    "decoder_residual",
    "decoder_middle",
    "decoder_next",
)


@pytest.fixture
def circuit():
    return lf.Circuit(lf.recipes.lloyd(), n_features=1, n_clusters=2)


def uncertain(recipe):
    """The heads whose scores are compared with a tolerance."""
    averaged = ("encoder_cross",) if recipe.ties == "average" else ()
    shares = recipe.decoder_cross.activation == LimitingSoftmax()
    return (*averaged, "decoder_cross") if shares else averaged


def test_names_of_all_intermediates(recipe, batch):
    points, centers = batch
    circuit = lf.Circuit(recipe, points.shape[-1], centers.shape[-2])
    trace = circuit(points, centers, n_layers=2, names_filter=("*",), seed=0)
    expected = {f"{slot}.{point}" for slot in recipe.heads for point in HEAD} | set(TOKENS)
    expected |= {f"{name}.tolerance" for name in uncertain(recipe)}
    expected |= {"separation", "gap"} if recipe.separated else set()
    expected |= {"feedforward.hidden", "feedforward.output"} if recipe.feedforward else set()
    expected |= {f"numbers.{kind}" for kind in recipe.numbers.kinds} if recipe.numbers else set()
    assert set(trace.names) == {f"layers.{t}.{name}" for t in range(2) for name in expected}
    assert set(trace.kept) == set(trace.names)
    assert all(len(trace[name]) == len(points) for name in trace.names)


@pytest.mark.parametrize("batch_size", [(), (3,)])
def test_shapes(batch_size):
    points, centers = torch.rand(*batch_size, 7, 4), torch.rand(*batch_size, 3, 4)
    trace = lf.Circuit(lf.recipes.lloyd(), 4, 3)(
        points, centers, n_layers=5, names_filter=("layers.2.*",)
    )
    assert trace.n_layers == 5
    assert trace.points.shape == (*batch_size, 7, 4)
    assert trace.centers.shape == (*batch_size, 6, 3, 4)
    assert trace.assignments.shape == (*batch_size, 5, 7, 3)
    assert trace.labels.shape == (*batch_size, 5, 7)
    assert trace.objective.shape == (*batch_size, 6)
    assert trace.origin.shape == (*batch_size, 1, 4)
    assert trace["layers.2.encoder_self.attention"].shape == (*batch_size, 7, 7)
    assert trace["layers.2.decoder_cross.scores"].shape == (*batch_size, 3, 7)
    assert trace["layers.2.decoder_next"].shape == (*batch_size, 3, 4 + 3)


PATTERNS = {
    (): 0,
    ("layers.1.*",): 32,
    ("layers.0.encoder_cross.*", "layers.1.encoder_cross.attention"): 7,
    ("*.attention",): 8,
    "*.scores": 8,
}


@pytest.mark.parametrize("keep", PATTERNS)
def test_only_matching_intermediates_are_kept(circuit, keep):
    trace = circuit(POINTS, CENTERS, n_layers=2, names_filter=keep)
    assert len(trace.kept) == PATTERNS[keep]


@pytest.mark.parametrize("keep", ["nothing", ("layers.9.*",), ("layers.0.encoder_cros.scores",)])
def test_a_pattern_that_matches_nothing_is_refused(circuit, keep):
    with pytest.raises(ValueError, match=r"names_filter: found '.*', which matches none of"):
        circuit(POINTS, CENTERS, n_layers=2, names_filter=keep)


def test_values_of_kept_intermediates(circuit):
    trace = circuit(POINTS, CENTERS, n_layers=2, names_filter=("*",))
    assert torch.equal(trace["layers.1.encoder_cross.attention"], trace.assignments[1])
    assert trace["layers.0.encoder_cross.scores"][1:3].tolist() == [[-1, 0], [-25, -16]]
    assert torch.equal(trace["layers.0.decoder_next"], trace["layers.1.decoder_tokens"])
    assert torch.equal(trace["layers.1.decoder_next"][:, :1] + trace.origin, trace.centers[2])


def test_a_name_that_was_not_kept(circuit):
    name = "layers.1.encoder_cross.attention"
    with pytest.raises(
        KeyError, match=r"was not kept: run the circuit with names_filter=\(.layers.1."
    ):
        circuit(POINTS, CENTERS, 2, names_filter=("layers.0.*",))[name]


def test_a_name_that_does_not_exist(circuit):
    trace = circuit(POINTS, CENTERS, 2)
    with pytest.raises(KeyError, match=r"not an intermediate .* mean 'layers.1.decoder_next'"):
        trace["layers.1.decoder_nest"]
    with pytest.raises(KeyError, match=r"'zzz' is not an intermediate of this circuit.$"):
        trace["zzz"]


def test_printing(circuit):
    assert repr(circuit(POINTS, CENTERS, 2, names_filter=("*.keys",))) == (
        "Trace(2 layers, 4 points, 2 centers, 1 features, 8 of 64 intermediates kept)"
    )


def test_encoder_self_attention_is_the_identity_for_distinct_points(rng):
    points = torch.tensor(rng.normal(size=(25, 3)) + 1e6)
    trace = lf.Circuit(lf.recipes.lloyd(), 3, 4)(
        points, points[:4], 2, names_filter="*.encoder_self.*"
    )
    assert torch.equal(trace["layers.1.encoder_self.attention"], torch.eye(25).double())


def test_self_attention_cancels_the_old_assignment(circuit):
    trace = circuit(POINTS, CENTERS, 2, names_filter="*")
    assert circuit.space.read(trace["layers.1.encoder_tokens"], ASSIGNMENT).any()
    assert not circuit.space.read(trace["layers.1.encoder_residual"], ASSIGNMENT).any()


def test_results_depend_on_encoder_self_attention(circuit):
    """Without it assignments add up: 1 was in cluster 1 before, so only 0 is in cluster 0."""
    silent = circuit.layers[0].encoder_self.attention.register_forward_hook(
        lambda module, inputs, output: torch.zeros_like(output)
    )
    assert circuit(POINTS, CENTERS, 2).centers[2].tolist() == [[0], [7]]
    silent.remove()
    assert circuit(POINTS, CENTERS, 2).centers[2].tolist() == [[0.5], [7]]


def test_an_ordinary_hook_reads(circuit):
    seen = []
    point = circuit.layers[0].encoder_cross.attention
    point.register_forward_hook(lambda module, inputs, output: seen.append(output))
    trace = circuit(POINTS, CENTERS, 3)
    assert torch.equal(torch.stack(seen), trace.assignments)


def test_an_ordinary_hook_replaces(circuit):
    """All points to cluster 0: its center is their mean, and the trace shows the replaced value."""
    everyone = torch.tensor([[1.0, 0.0]]).expand(4, 2)
    point = circuit.layers[0].encoder_cross.attention
    point.register_forward_hook(lambda module, inputs, output: everyone)
    trace = circuit(POINTS, CENTERS, 1)
    assert trace.centers[1, 0].tolist() == [3.75]
    assert trace.labels.tolist() == [[0, 0, 0, 0]]


def test_hooks_are_removed_after_a_run(circuit):
    circuit(POINTS, CENTERS, 1, names_filter="*")
    assert not any(module._forward_hooks for module in circuit.modules())


LINE = torch.tensor([[0.0], [1.0], [10.0], [12.0]])


def test_one_layer_of_several_is_patched(circuit):
    """Layers share a module; only the second one has its attention swapped."""
    plain = circuit(LINE, LINE[:2], 3)
    with circuit.patch("layers.1.encoder_cross.attention", lambda a: a.flip(-1)):
        patched = circuit(LINE, LINE[:2], 3)
    assert torch.equal(patched.assignments[0], plain.assignments[0])
    assert torch.equal(patched.assignments[1], plain.assignments[1].flip(-1))
    assert torch.equal(patched.centers[2], plain.centers[2].flip(0))
    assert torch.equal(circuit(LINE, LINE[:2], 3).centers, plain.centers)


def test_a_tensor_replaces_the_value(circuit):
    everyone = torch.tensor([[1, 0]]).expand(4, 2)
    with circuit.patch("layers.0.encoder_cross.attention", everyone):
        trace = circuit(LINE, LINE[:2], 1)
    assert trace.centers[1, 0].tolist() == [5.75]


def test_a_pattern_patches_every_match(circuit):
    with circuit.patch("layers.*.encoder_self.attention", torch.zeros_like):
        trace = circuit(LINE, LINE[:2], 2, names_filter="*.encoder_self.attention")
    assert not any(value.any() for value in trace.kept.values())


def test_patches_apply_in_order_and_the_trace_keeps_the_result(circuit):
    name = "layers.0.decoder_tokens"
    with circuit.patch(name, lambda t: t + 1), circuit.patch(name, lambda t: 2 * t):
        trace = circuit(LINE, LINE[:2], 1, names_filter=name)
    unpatched = circuit(LINE, LINE[:2], 1, names_filter=name)
    assert torch.equal(trace[name], 2 * (unpatched[name] + 1))


def test_two_tensors_under_one_name_come_off_in_turn(circuit):
    name = "layers.0.encoder_cross.attention"
    ones, others = (torch.tensor([row]).expand(4, 2) for row in ([1.0, 0.0], [0.0, 1.0]))
    with circuit.patch(name, ones):
        with circuit.patch(name, others):
            assert circuit(LINE, LINE[:2], 1).labels.tolist() == [[1, 1, 1, 1]]
        assert circuit(LINE, LINE[:2], 1).labels.tolist() == [[0, 0, 0, 0]]
    assert circuit(LINE, LINE[:2], 1).labels.tolist() == [[0, 1, 1, 1]]


def test_copies_are_not_patched(circuit):
    with circuit.patch("layers.0.encoder_cross.attention", lambda a: a.flip(-1)):
        copied = copy.deepcopy(circuit), pickle.loads(pickle.dumps(circuit))
    plain = circuit(LINE, LINE[:2], 1).centers
    assert all(torch.equal(one(LINE, LINE[:2], 1).centers, plain) for one in copied)


def test_a_patch_is_not_undone_by_logarithms():
    """A center far from all points moves by the logarithms of its shares, unless patched."""
    circuit = lf.Circuit(lf.recipes.soft(), n_features=1, n_clusters=2)
    far = torch.tensor([[0.0], [40.0]])
    with circuit.patch("layers.0.encoder_cross.attention", lambda a: a + torch.tensor([0, 1e-4])):
        trace = circuit(LINE, far, 1)
    assert trace.centers[1, 1].item() == pytest.approx(5.75)
    assert circuit(LINE, far, 1).centers[1, 1].item() == pytest.approx(12.0)


def test_numbers_from_outside_can_be_patched():
    """Without a separation, only a center's nearest point counts as its own."""
    circuit = lf.Circuit(lf.recipes.trimmed(1.0), n_features=1, n_clusters=2)
    with circuit.patch("layers.0.separation", torch.zeros_like):
        trace = circuit(LINE, LINE[[0, 3]], 1)
    assert trace.outside[0].separation.item() == 0
    assert not torch.equal(trace.centers, circuit(LINE, LINE[[0, 3]], 1).centers)


@pytest.mark.parametrize("new", [torch.zeros(3, 2), lambda t: None, lambda t: t[:1]])
def test_another_shape_is_refused_by_name(circuit, new):
    message = r"patch 'layers.0.decoder_tokens': found .*; pass a tensor of shape \(2, 3\)"
    with circuit.patch("layers.0.decoder_tokens", new), pytest.raises(ValueError, match=message):
        circuit(LINE, LINE[:2], 1)


def test_a_name_that_matches_nothing_is_refused(circuit):
    message = r"patch: found 'layers.5.decoder_tokens', which matches none of"
    with (
        circuit.patch("layers.5.decoder_tokens", torch.zeros_like),
        pytest.raises(ValueError, match=message),
    ):
        circuit(LINE, LINE[:2], 2)


def test_staged_layers_are_patched_too():
    circuit = lf.Circuit(lf.recipes.relocating(), n_features=1, n_clusters=2)
    kept = {}
    with circuit.patch("layers.0.decoder_next", lambda t: kept.setdefault("next", 0 * t)):
        trace = circuit(LINE, LINE[:2], 1, seed=0)
    assert torch.equal(trace.centers[1], trace.origin.expand(2, 1))
    assert circuit.space.read(kept["next"], POSITION).shape == (2, 1)
