"""Disguised models compute the same, and their key says which head does what."""

from importlib.util import find_spec

import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.norms import zero_sum

RECIPES = {
    "lloyd": lf.recipes.lloyd(),
    "lloyd_dot": lf.recipes.lloyd_dot(),
    "lloyd_binary": lf.recipes.lloyd_binary(),
    "spherical": lf.recipes.spherical(),
    "spherical, layer": lf.recipes.spherical("layer"),
    "robust, softmax": lf.recipes.robust(3.0, "softmax", separation=20.0),
}
LAYERS = 3


def compiled(name):
    return lf.compile_transformer(RECIPES[name], 3, 4, LAYERS)


def problem(name, number):
    """Four clusters of six points in the unit ball, or on the sphere."""
    generator = torch.Generator().manual_seed(number)
    d = 2 if "layer" in name else 3
    middles = torch.randn(4, d, dtype=torch.float64, generator=generator)
    noise = 0.2 * torch.randn(24, d, dtype=torch.float64, generator=generator)
    points = middles[torch.arange(24) % 4] + noise
    if RECIPES[name].norm is None:
        points = points / points.norm(dim=1).max()
    else:
        points = points / points.norm(dim=1, keepdim=True)
        points = zero_sum(points) if "layer" in name else points
    return points, points[:4].clone()


@pytest.mark.parametrize("rotation", [True, False])
@pytest.mark.parametrize("name", RECIPES)
def test_a_disguised_model_computes_the_same(name, rotation):
    plain = compiled(name)
    for number in range(2):
        hidden = lf.interp.disguise(plain, rotation, extra_heads=2, seed=number)
        points, centers = problem(name, number)
        wanted, found = plain.model()(points, centers), hidden.model(points, centers)
        torch.testing.assert_close(found[0], wanted[0], rtol=0, atol=1e-9)
        assert torch.equal(found[1], wanted[1])


def test_the_weights_do_not_show_the_algorithm():
    plain, hidden = compiled("lloyd").model(), lf.interp.disguise(compiled("lloyd")).model
    for block, other in zip(plain.blocks, hidden.blocks, strict=True):
        assert (block.attention.W_Q == 0).float().mean() > 0.8
        assert other.attention.W_Q.shape[0] == 6
        assert (other.attention.W_Q == 0).sum() == 0
    kinds = [lf.interp.disguise(compiled("lloyd"), seed=s).roles for s in (0, 1)]
    assert kinds[0] != kinds[1]


@pytest.mark.parametrize(
    "role", ["idle", "assign", "update", "erase the cluster", "erase the center"]
)
def test_the_key_is_true_by_ablation(role):
    hidden = lf.interp.disguise(compiled("lloyd"), seed=4)
    points, _ = problem("lloyd", 1)
    centers = points[:16:4]  # of one cluster, so that labels change and there is something to erase
    before, _ = hidden.model(points, centers)
    for block, roles in zip(hidden.model.blocks, hidden.roles, strict=True):
        heads = [number for number, found in enumerate(roles) if found == role]
        with torch.no_grad():
            block.attention.W_O[heads] = 0
    moved = (hidden.model(points, centers)[0] - before).abs().max().item()
    assert (moved < 1e-9) == (role == "idle")


def test_the_rotation_is_the_key_to_the_stream():
    plain = compiled("lloyd")
    hidden = lf.interp.disguise(plain, seed=2)
    points, centers = problem("lloyd", 0)
    streams = []
    for model in (plain.model(), hidden.model):
        hook = model.blocks[2].out.register_forward_hook(lambda m, i, out: streams.append(out))
        model(points, centers)
        hook.remove()
    torch.testing.assert_close(streams[0] @ hidden.rotation, streams[1], rtol=0, atol=1e-9)


def test_an_odd_number_of_idle_heads_is_refused():
    with pytest.raises(ValueError, match="extra_heads: found 3; pass an even number"):
        lf.interp.disguise(compiled("lloyd"), extra_heads=3)


@pytest.mark.skipif(find_spec("transformer_lens") is not None, reason="it is installed")
def test_without_transformer_lens():
    with pytest.raises(ValueError, match="TransformerLens is not installed"):
        lf.interp.hooked(compiled("lloyd").model())


@pytest.mark.long  # its import takes half a minute
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    find_spec("transformer_lens") is None, reason='the extra "interp" is not installed'
)
def test_transformer_lens():
    model = compiled("lloyd").model()
    points, centers = problem("lloyd", 0)
    lens = lf.interp.hooked(model)
    wanted = model(points, centers)
    (found, labels), cache = lens.run_with_cache(points, centers)
    assert torch.equal(found, wanted[0])
    assert torch.equal(labels, wanted[1])
    assert cache["blocks.0.attention.pattern"].shape == (2, 28, 28)
    name = "blocks.0.attention.result"
    changed, _ = lens.run_with_hooks(
        points, centers, fwd_hooks=[(name, lambda value, hook: torch.zeros_like(value))]
    )
    assert not torch.equal(changed, found)


@pytest.mark.long  # its import takes seconds
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["compiled", "disguised", "circuit"])
def test_nnsight(kind):
    """Reads an intermediate, and sets it, in models and in circuits themselves."""
    nnsight = pytest.importorskip("nnsight")
    points, centers = problem("lloyd", 0)
    made = compiled("lloyd")
    model = made.model() if kind == "compiled" else lf.interp.disguise(made).model
    given = {}
    if kind == "circuit":
        model, given = lf.Circuit(RECIPES["lloyd"], 3, 4), {"n_layers": 1}
    wanted, wrapped = model(points, centers, **given), nnsight.NNsight(model)
    with wrapped.trace(points, centers, **given):
        if kind == "circuit":
            read = wrapped.layers[0].encoder_cross.attention.output.save()
        else:
            read = wrapped.blocks[0].attention.pattern.output.save()
        found = wrapped.output.save()
    with wrapped.trace(points, centers, **given):
        if kind == "circuit":
            wrapped.layers[0].encoder_cross.attention.output[:] = 1 / 4
        else:
            wrapped.blocks[0].attention.result.output[:] = 0
        changed = wrapped.output.save()
    if kind == "circuit":
        assert torch.equal(read, wanted.assignments[0])
        assert torch.equal(found.centers, wanted.centers)
        # without an assignment every center is the mean of all points
        torch.testing.assert_close(changed.centers[1], points.mean(dim=0).expand(4, 3))
    else:
        assert read.shape[1:] == (28, 28)
        assert torch.equal(found[0], wanted[0])
        assert not torch.equal(changed[0], wanted[0])
