"""Compiled transformers keep their bound, and their model is plain torch without this package."""

import ast
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.norms import zero_sum
from lloydformer.export import plain_transformer

SOURCE = Path(plain_transformer.__file__)
POSSIBLE = {
    "lloyd": lf.recipes.lloyd(),
    "lloyd, averaged": lf.recipes.lloyd("average"),
    "lloyd_dot": lf.recipes.lloyd_dot(),
    "lloyd_binary": lf.recipes.lloyd_binary(),
    "spherical": lf.recipes.spherical(),
    "spherical, layer": lf.recipes.spherical("layer"),
    "robust, softmax": lf.recipes.robust(3.0, "softmax", separation=20.0),
    "robust_lifted, softmax": lf.recipes.robust_lifted(3.0, "softmax", separation=20.0),
}
LAYERS = 3


def problem(name, number):
    """Points in the unit ball, or on the sphere, and some of them as centers."""
    rng = np.random.default_rng([number, list(POSSIBLE).index(name)])
    n, d, k = int(rng.integers(8, 40)), int(rng.integers(2, 5)), int(rng.integers(1, 5))
    middles = rng.normal(size=(k, d))
    points = torch.from_numpy(middles[np.arange(n) % k] + 0.3 * rng.normal(size=(n, d)))
    if POSSIBLE[name].norm is not None:
        points = points / points.norm(dim=1, keepdim=True)
        points = zero_sum(points) if "layer" in name else points
    else:
        points = points - points.mean(dim=0)
        points = points / points.norm(dim=1).max()
    return points, points[torch.from_numpy(rng.choice(n, size=k, replace=False))]


def compiled(name, points, centers, **given):
    recipe = POSSIBLE[name]
    return lf.compile_transformer(recipe, points.shape[1], len(centers), LAYERS, **given)


def differences(name, given, dtype=torch.float64, n_problems=20):
    """Yield, for each problem, the distance to the circuit, the bound, and equality of labels."""
    for number in range(n_problems):
        points, centers = problem(name, number)
        made = compiled(name, points, centers, dtype=dtype, **given)
        trace = lf.Circuit(POSSIBLE[name], points.shape[1], len(centers))(points, centers, LAYERS)
        found, labels = made.model()(points.to(dtype), centers.to(dtype))
        away = (found.double() - trace.centers[-1]).norm(dim=-1).max().item()
        bound = made.bound(points, centers)
        yield away, bound, torch.equal(labels, trace.labels[-1])


@pytest.mark.parametrize("n_problems", [20, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.parametrize("limit", [False, True], ids=["finite", "limit"])
@pytest.mark.parametrize("name", POSSIBLE)
def test_the_bound_holds(name, limit, n_problems):
    narrow, found = 0, differences(name, {"limit": limit}, n_problems=n_problems)
    for number, (away, bound, same) in enumerate(found):
        assert bound[0] == 0
        assert away <= bound[-1].item(), f"problem {number}"
        # a bound of the diameter says nothing; labels may differ only there
        assert same or bound[-2] > 1e-3, f"problem {number}"
        narrow += bound[-1].item() < 1e-6
    assert narrow > 0.8 * n_problems


@pytest.mark.parametrize("name", ["lloyd", "robust, softmax"])
def test_a_lower_temperature_gives_a_wider_bound_that_holds(name):
    sizes = []
    for gamma in (3e3, 3e4, 3e5):
        found = list(differences(name, {"inverse_temperature": gamma}))
        assert all(away <= bound[-1].item() for away, bound, _ in found)
        sizes.append(np.median([bound[-1].item() for _, bound, _ in found]))
    assert sizes[0] > sizes[1] > sizes[2]


def test_single_precision_keeps_its_bound():
    found = list(differences("lloyd", {}, torch.float32))
    assert all(away <= bound[-1].item() for away, bound, _ in found)
    assert np.median([bound[-1].item() for _, bound, _ in found]) < 0.1


def test_a_margin_that_is_too_small_gives_the_diameter():
    points = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)
    made = compiled("lloyd", points, points[::2])
    assert made.bound(points, points[::2]).tolist() == [0.0, 2.0, 2.0, 2.0]


def test_self_attention_is_the_identity_and_erases():
    points, centers = problem("lloyd", 3)
    model = compiled("lloyd", points, centers).model()
    found = {}
    for number, block in enumerate(model.blocks):
        block.attention.pattern.register_forward_hook(
            lambda m, i, out, number=number: found.update({number: out})
        )
    model(points, centers)
    n = len(points)
    for number in range(2 * LAYERS):
        assert torch.equal(found[number][0], torch.eye(n + len(centers), dtype=torch.float64))
    assign, update = found[0][1], found[1][1]
    assert assign[:n, :n].abs().max() == 0  # points attend to centers only, and centers to points
    assert torch.equal(assign[n:, n:], torch.eye(len(centers), dtype=torch.float64))
    assert update[n:, n:].abs().max() == 0
    assert torch.equal(update[:n, :n], torch.eye(n, dtype=torch.float64))


def test_the_plain_model_is_short_and_imports_nothing_of_ours():
    text = SOURCE.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 150
    names = [
        name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
    ]
    assert {name.split(".")[0] for name in names} == {"json", "typing", "torch", "safetensors"}


ALONE = """
import json, sys
sys.modules["lloydformer"] = None
import torch
from plain_transformer import read
points = torch.tensor([[-0.9], [-0.8], [0.5], [0.7]], dtype=torch.float64)
centers, labels = read(sys.argv[1])(points, points[:2])
print(json.dumps([centers.flatten().tolist(), labels.tolist()]))
"""


def test_the_weights_load_into_the_copied_file(tmp_path):
    shutil.copy(SOURCE, tmp_path)
    made = lf.compile_transformer(lf.recipes.lloyd(), 1, 2, n_layers=3)
    made.save(tmp_path / "lloyd.safetensors")
    command = [sys.executable, "-c", ALONE, "lloyd.safetensors"]
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    centers, labels = json.loads(found.stdout)
    assert labels == [0, 0, 1, 1]
    np.testing.assert_allclose(centers, [-0.85, 0.6], atol=1e-9)


def test_a_batch_and_gradients():
    points, centers = problem("lloyd", 5)
    model = compiled("lloyd", points, centers, inverse_temperature=50.0).model()
    batch = model(torch.stack([points, -points]), torch.stack([centers, -centers]))
    for sign, found in zip((1, -1), batch[0], strict=True):
        alone, _ = model(sign * points, sign * centers)
        torch.testing.assert_close(found, alone, rtol=0, atol=1e-12)
    batch[0].square().sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (lf.recipes.soft(), "linear attention divides shares"),
        (lf.recipes.soft_dot(), "linear attention divides shares"),
        (lf.recipes.trimmed(), "decoder_cross has NormMax"),
        (lf.recipes.robust(), "decoder_cross has Sparsemax"),
        (lf.recipes.robust_lifted(), "decoder_cross has Sparsemax"),
        (lf.recipes.medoids(), "decoder_cross has Gumbel"),
        (lf.recipes.relocating(), "its stages have several sets"),
        (lf.recipes.medoids_swap(), "its stages have several sets"),
        (lf.recipes.symmetric(), "its weights are learned"),
        (lf.recipes.learned(), "its weights are learned"),
        (lf.recipes.robust(1.0, "softmax"), "give one, as separation=20.0"),
        (
            replace(
                lf.recipes.lloyd(),
                encoder_self=replace(lf.recipes.lloyd().encoder_self, activation=Softmax(2.0)),
            ),
            "its heads are none of",
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_other_recipes_say_why(recipe, reason):
    with pytest.raises(ValueError, match=reason):
        lf.compile_transformer(recipe, 2, 3, 1)


def test_every_recipe_is_compiled_or_refused():
    known = {recipe.name for recipe in POSSIBLE.values()}
    refused = {"soft", "soft_dot", "trimmed", "medoids", "relocating", "medoids_swap"}
    assert known | refused | {"symmetric", "learned"} == set(lf.recipes.MAKERS)


def test_wrong_arguments():
    made = lf.compile_transformer(lf.recipes.lloyd(), 1, 2, 1)
    with pytest.raises(ValueError, match=r"points: found 3\.0; their length is at most radius=1"):
        made.bound(torch.tensor([[3.0], [0.0]]), torch.tensor([[0.0], [1.0]]))
    with pytest.raises(ValueError, match=r"path: found 'a\.pt'"):
        made.save("a.pt")
    for name, value in {"radius": 0.0, "inverse_temperature": -1.0, "dtype": torch.int8}.items():
        with pytest.raises(ValueError, match=f"{name}: found"):
            lf.compile_transformer(lf.recipes.lloyd(), 1, 2, 1, **{name: value})
