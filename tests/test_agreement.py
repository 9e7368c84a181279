"""Circuit = algorithm for every recipe, tie rule, family of problems and precision."""

import numpy as np
import pytest
import torch

from lloydformer.circuits.activations import Ties
from lloydformer.circuits.circuit import Circuit
from lloydformer.paper.verify.compare import Deviation, free_running, layer_by_layer
from lloydformer.paper.verify.known import (
    PAIRS,
    finds_points_by_dot_product,
    has_average_ties,
    is_spherical,
    make_recipe,
)
from lloydformer.paper.verify.problems import CONTINUOUS, FAMILIES, Problem, on_sphere, with_centers
from lloydformer.paper.verify.trials import Trial, draw_trial, pair

FEW, MANY = range(1), range(50)  # 50 of each family are 200 problems for each recipe
NAMES = list(PAIRS)
DTYPES = (torch.float64, torch.float32)
RULES = [
    (name, ties) for name in NAMES for ties in ("first", "average")
    if ties == "first" or has_average_ties(name)
]  # fmt: skip
COMBINATIONS = [
    (name, ties, family) for name, ties in RULES for family in FAMILIES
    if not (is_spherical(name) and family == "shifted")
]  # fmt: skip


def drawn(name: str, ties: Ties, family: str, number: int, dtype=torch.float64) -> Trial:
    """The problem with this number; different for each combination."""
    place = (NAMES.index(name), FAMILIES.index(family), ("first", "average").index(ties))
    rng = np.random.default_rng([number, *place])
    return draw_trial(rng, name, family, ties, dtype)


def tolerance(trial: Trial) -> float:
    """Tolerance in spreads. It includes the rounding of centers far from the origin.

    Robust circuits with dot products and averaged ties need k^2 times the separation. Their scores
    are near 10^4, with a rounding error of 5e-4 each.
    """
    if trial.dtype == torch.float64:
        return 1e-9
    wide = trial.recipe.ties == "average" and trial.recipe.name in (
        "robust_lifted",
        "robust_dot",
        "spherical_robust",
    )
    largest = np.abs(trial.problem.points).max() / trial.problem.spread
    stored = torch.finfo(trial.dtype).eps * largest
    return float((1e-3 if wide else 2e-5) + stored)


def check_layers(name, ties, family, dtype, numbers) -> None:
    for number in numbers:
        trial = drawn(name, ties, family, number, dtype)
        found = layer_by_layer(trial)
        assert found.within(tolerance(trial)), f"problem {number}: {found}"


def check_free_running(name, ties, family, numbers) -> None:
    """Skip problems where rounding decides within the algorithm itself; most must remain."""
    runs = [free_running(drawn(name, ties, family, i)) for i in numbers]
    decided = [run for run in runs if run is not None]
    assert 2 * len(decided) > len(runs)
    assert sum(decided, Deviation()).within(1e-9), decided


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "ties", "family"), COMBINATIONS)
def test_layer_by_layer(name, ties, family, dtype):
    check_layers(name, ties, family, dtype, FEW)


@pytest.mark.long
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("name", "ties", "family"), COMBINATIONS)
def test_layer_by_layer_on_many(name, ties, family, dtype):
    check_layers(name, ties, family, dtype, MANY)


@pytest.mark.parametrize("family", CONTINUOUS)
@pytest.mark.parametrize(("name", "ties"), RULES)
def test_free_running(name, ties, family):
    check_free_running(name, ties, family, FEW)


@pytest.mark.long
@pytest.mark.parametrize("family", CONTINUOUS)
@pytest.mark.parametrize(("name", "ties"), RULES)
def test_free_running_on_many(name, ties, family):
    check_free_running(name, ties, family, MANY)


def twins(name: str, separation: float) -> Problem:
    """Thirty pairs of points at this distance, in spreads; 0 makes them equal."""
    rng = np.random.default_rng([NAMES.index(name), 7])
    points, directions = rng.normal(size=(2, 30, 3))
    spread = with_centers(rng, points, 4, "clustered").spread
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    both = np.concatenate([points, points + separation * spread * directions])
    problem = with_centers(rng, both, 4, "clustered")
    return on_sphere(rng, problem) if is_spherical(name) else problem


SEPARATIONS = [
    (name, separation) for name in NAMES if name != "spherical_layer"  # its points sum to zero
    for separation in (0.0, 1e-6, 1e-12, 1e-15)
    if separation in (0.0, 1e-6) or not finds_points_by_dot_product(make_recipe(name))
]  # fmt: skip


@pytest.mark.parametrize(("name", "separation"), SEPARATIONS)
def test_nearly_equal_points(name, separation):
    trial = pair(np.random.default_rng(1), name, "first", twins(name, separation))
    assert layer_by_layer(trial).within(1e-9)


@pytest.mark.parametrize(("name", "separation"), [s for s in SEPARATIONS if s[1]])
def test_nearly_equal_points_attend_only_to_themselves(name, separation):
    found = pair(np.random.default_rng(1), name, "first", twins(name, separation))
    points, centers = torch.tensor(found.problem.points), torch.tensor(found.problem.centers)
    circuit = Circuit(found.recipe, n_features=3, n_clusters=4)
    trace = circuit(points, centers, 1, names_filter="*.encoder_self.attention", seed=0)
    assert len(points.unique(dim=0)) == len(points) == 60
    assert torch.equal(trace["layers.0.encoder_self.attention"], torch.eye(60).double())
