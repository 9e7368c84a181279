"""Wrong input raises a ValueError that names the argument, what was found and the repair."""

import numpy as np
import pytest
import torch

import lloydformer as lf
from lloydformer.circuits.stages import as_schedule

X = torch.tensor([[0.0, 1.0], [1.0, 0.0], [3.0, 3.0], [4.0, 3.0]])
C = X[:2]
UNIT = X / X.norm(dim=-1, keepdim=True)


def put(tensor, value):
    """A copy with another value in its second row."""
    changed = tensor.clone()
    changed[1, 0] = value
    return changed


WRONG = {
    "one axis": ((X[0], C), "points: found shape (2,); pass rows (m, d)"),
    "no points": ((X[:0], C), "points: found shape (0, 2); pass rows (m, d)"),
    "centers of another width": ((X, C[:, :1]), "centers: found shape (2, 1) with points of shape"),
    "a batch and no batch": ((X, C[None]), "centers: found shape (1, 2, 2) with points of shape"),
    "whole numbers": ((X.long(), C), "points: found dtype torch.int64; convert to float32"),
    "whole centers": ((X, C.int()), "centers: found dtype torch.int32; convert to float32"),
    "nan": ((put(X, torch.nan), C), "points: found nan at (1, 0); remove or fill in"),
    "infinity": ((X, put(C, torch.inf)), "centers: found inf at (1, 0); remove or fill in"),
    "nan in an array": ((np.full((3, 2), np.nan), C), "points: found nan at (0, 0); remove"),
    "two dtypes": (
        (X, C.double()),
        "centers: found dtype torch.float64 with points of",
    ),
    "two devices": ((X, C.to("meta")), "centers: found on device meta with points on cpu; move"),
    "more centers than points": ((X[:1], C), "centers: found 2 for 1 points; use at most one"),
    "another width": (
        (X[:, :1], C[:, :1]),
        "found 1 features and 2 centers; this circuit",
    ),
    "another k": ((X, X[:3]), "found 2 features and 3 centers; this circuit was made with n"),
    "no layers": ((X, C, 0), "n_layers: found 0; pass an integer, 1 or more"),
    "fewer layers": ((X, C, -3), "n_layers: found -3; pass an integer, 1 or more"),
}


@pytest.mark.parametrize("fault", WRONG)
def test_wrong_input_to_a_circuit(fault):
    arguments, complaint = WRONG[fault]
    with pytest.raises(ValueError) as error:
        lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=2)(*arguments)
    assert complaint in str(error.value)


@pytest.mark.parametrize("norm", ["rms", "layer"])
def test_spherical_circuits_need_unit_points(norm):
    """Initial centers may be any (thm:sp-clus ip); test_variants.py has them."""
    circuit = lf.Circuit(lf.recipes.spherical(norm), n_features=2, n_clusters=2)
    good = torch.tensor([[1.0, -1.0], [-1.0, 1.0]]) / 2**0.5
    with pytest.raises(
        ValueError, match=r"points: .* norm differs from 1 by 0\.5; normalise first"
    ):
        circuit(1.5 * good, good)


def test_layer_norm_needs_zero_sums():
    circuit = lf.Circuit(lf.recipes.spherical("layer"), n_features=2, n_clusters=2)
    with pytest.raises(ValueError, match=r"points: .* sum to 1.4; .*zero_sum\(points\) or RMSNorm"):
        circuit(UNIT, UNIT[:2])


SEEDS = {
    "none": (None, "seed: found None; Gumbel attention draws noise, pass an integer seed"),
    "too few": ([1, 2], "seed: found 2 for 3 problems; pass one for each"),
    "negative": (-1, "seed: found -1; pass an integer, 0 or more"),
}


@pytest.mark.parametrize("fault", SEEDS)
def test_seeds(fault):
    seed, complaint = SEEDS[fault]
    circuit = lf.Circuit(lf.recipes.medoids(), n_features=2, n_clusters=2)
    with pytest.raises(ValueError, match=complaint):
        circuit(X.expand(3, -1, -1), C.expand(3, -1, -1), seed=seed)


@pytest.mark.parametrize("name", ["n_features", "n_clusters"])
def test_wrong_sizes(name):
    sizes = {"n_features": 2, "n_clusters": 2, name: 0}
    with pytest.raises(ValueError, match=f"{name}: found 0; pass an integer, 1 or more"):
        lf.Circuit(lf.recipes.lloyd(), **sizes)


@pytest.mark.parametrize("schedule", [(), "lloyd", lf.recipes.lloyd, [lf.recipes.lloyd(), 3]])
def test_a_wrong_recipe_is_refused(schedule):
    with pytest.raises(ValueError, match=r"recipe: found .*; pass a recipe, for example"):
        as_schedule(schedule)  # called directly, because types are checked in tests


def test_a_schedule_needs_equal_tokens():
    with pytest.raises(ValueError, match=r"recipe: a schedule needs recipes with the same tokens"):
        lf.Circuit((lf.recipes.lloyd(), lf.recipes.lloyd_dot()), 2, 2)


def test_zero_weights_give_a_warning():
    """As printed, a center at 1000 has only weights exp(-10^6) = 0, so its mean is 0/0."""
    far = torch.tensor([[0.0, 0.0], [1000.0, 0.0]])
    circuit = lf.Circuit(lf.recipes.soft(), n_features=2, n_clusters=2, as_in_paper=True)
    with pytest.warns(RuntimeWarning, match="layer 0: a center is not a number.*linear attention"):
        trace = circuit(X, far, n_layers=2)
    assert trace.centers[1].isnan().any(dim=-1).tolist() == [False, True]


def test_a_cluster_that_sums_to_zero_gives_a_warning():
    points = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    circuit = lf.Circuit(lf.recipes.spherical(), n_features=2, n_clusters=1)
    with pytest.warns(RuntimeWarning, match="norm of a zero vector"):
        circuit(points[:2], points[2:], n_layers=1)
