"""Every recipe, with a small problem for it."""

import pytest
import torch

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.circuits.norms import zero_sum
from lloydformer.circuits.symmetric import Fixed

RECIPES = {
    "lloyd": recipes.lloyd(),
    "lloyd, averaged": recipes.lloyd("average"),
    "lloyd_dot": recipes.lloyd_dot(),
    "spherical, rms": recipes.spherical("rms"),
    "spherical, layer": recipes.spherical("layer"),
    "soft": recipes.soft(0.7),
    "trimmed": recipes.trimmed(0.8),
    "robust": recipes.robust(0.5),
    "robust, softmax": recipes.robust(0.5, "softmax"),
    "robust, top-k": recipes.robust(0.5, TopK(2)),
    "medoids": recipes.medoids(),
    "soft_dot": recipes.soft_dot(0.7),
    "robust_lifted": recipes.robust_lifted(0.5),
    "lloyd_binary": recipes.lloyd_binary(),
    "symmetric": recipes.symmetric(
        Fixed(
            (1.0, 7.0),
            (1.0, 0.8),
            (0.7, 0.6),
            (0.1, 0.2, 0.3, 0.4),
            (0.1, 0.0),
            (0.2, -0.1),
            (0.1, 0.3),
            (2.0,),
            (0.2,),
        )
    ),
}


@pytest.fixture(params=RECIPES)
def recipe(request):
    return RECIPES[request.param]


@pytest.fixture
def batch(recipe, rng):
    """Three problems: points (3, 12, 4) and centers (3, 3, 4), one feature more for LayerNorm."""
    points = torch.tensor(rng.normal(size=(3, 12, 4)))
    if recipe.norm:
        points = points / points.norm(dim=-1, keepdim=True)
        points = zero_sum(points) if recipe.norm.zero_sum else points
    return points, points[:, :3].clone()
