"""One recipe, three lives: literal circuit = plain algorithm = plan on every engine."""

import inspect
from functools import cache

import numpy as np
import pytest
import torch
from sklearn.base import clone

import lloydformer as lf
from lloydformer import algorithms, recipes
from lloydformer.circuits.activations import TopK
from lloydformer.circuits.norms import zero_sum
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines import ENGINES
from lloydformer.estimators import ALGORITHMS
from lloydformer.plans.contract import apply_update
from lloydformer.plans.lower import lower

LAYERS, SEED = 6, 11
LIVES = {
    "lloyd": (recipes.lloyd(), algorithms.Lloyd()),
    "lloyd_dot": (recipes.lloyd_dot(), algorithms.Lloyd()),
    "lloyd_binary": (recipes.lloyd_binary(), algorithms.LloydBinary()),
    "spherical": (recipes.spherical(), algorithms.Spherical()),
    "spherical, layer": (recipes.spherical("layer"), algorithms.Spherical()),
    "soft": (recipes.soft(0.3), algorithms.Soft(0.3)),
    "soft_dot": (recipes.soft_dot(0.3), algorithms.Soft(0.3)),
    "trimmed": (recipes.trimmed(0.8), algorithms.Trimmed(keep=0.8)),
    "robust": (recipes.robust(0.05), algorithms.Robust(inverse_temperature=0.05)),
    "robust, softmax": (
        recipes.robust(0.5, "softmax"),
        algorithms.Robust(inverse_temperature=0.5, activation="softmax"),
    ),
    "robust, top": (recipes.robust(0.5, TopK(5)), None),
    "robust_lifted": (
        recipes.robust_lifted(0.05),
        algorithms.Robust(inverse_temperature=0.05, lifted=True),
    ),
    "medoids": (recipes.medoids(2.0), algorithms.Medoids(separation=2.0, seed=SEED)),
}
LIVES |= {
    f"registered {known.name}": (known.recipe(), known.oracle())
    for known in ALGORITHMS.values()
    if isinstance(known.recipe(), lf.Recipe) and not lower(known.recipe()).draws_centers
}
"""With the parameters that are usual. Draws are compared by `medoids` above, with its seed."""


def registered(known):
    """The estimator with the recipe's inverse temperature; its own default is found from data."""
    usual = inspect.signature(known.recipe).parameters.get("inverse_temperature")
    default = getattr(usual, "default", None)
    return known.estimator(**({} if default is None else {"inverse_temperature": default}))


ESTIMATORS = {
    "lloyd": lf.KMeans(),
    "spherical": lf.SphericalKMeans(),
    "soft": lf.SoftKMeans(inverse_temperature=0.3),
    "trimmed": lf.TrimmedKMeans(keep=0.8),
    "robust": lf.RobustKMeans(inverse_temperature=0.05),
    "robust, softmax": lf.RobustKMeans(inverse_temperature=0.5, activation="softmax"),
    "robust, top": lf.RobustKMeans(inverse_temperature=0.5, activation=TopK(5)),
    **{
        name: lf.CircuitClusterer(recipe=LIVES[name][0])
        for name in ("lloyd_dot", "soft_dot", "robust_lifted", "lloyd_binary", "spherical, layer")
    },
    **{
        f"registered {known.name}": registered(known)
        for known in ALGORITHMS.values()
        if f"registered {known.name}" in LIVES
    },
}


def problem(name: str, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Blobs about as many middles as there are centers, so that none is empty."""
    rng = np.random.default_rng([number, list(LIVES).index(name)])
    n, d, k = rng.integers(60, 150), rng.integers(2, 8), rng.integers(2, 6)
    own = np.arange(n) % k
    points = torch.from_numpy(rng.uniform(-4, 4, size=(k, d))[own] + rng.normal(size=(n, d)))
    if "spherical" in name:
        points = points / points.norm(dim=1, keepdim=True)
        points = zero_sum(points) if "layer" in name else points
    return points, points[:k].clone()


@cache
def traced(name: str, number: int) -> lf.Trace:
    points, centers = problem(name, number)
    circuit = lf.Circuit(LIVES[name][0], points.shape[1], len(centers))
    return circuit(points, centers, LAYERS, seed=SEED)


def spread(points: torch.Tensor) -> float:
    return (points - points.mean(dim=0)).norm(dim=1).max().item()


def stepped(name: str, points, centers, layer: int, engine: str):
    """One step of the plan over leaves of ten points: new centers, and labels."""
    plan = lower(LIVES[name][0]).with_seed(SEED)
    data = TensorBlocks(points, leaf=10, directions=plan.directions)
    opened_by = ENGINES[engine]()
    if hasattr(opened_by, "n_threads"):
        opened_by.n_threads = 2
    with opened_by.open(data) as session:
        origin = session.layout.origin
        step = plan.step(session, centers - origin, layer)
        new = apply_update(step.update, centers - origin, plan.directions)
        return new + origin, session.labels()


@pytest.mark.parametrize("number", [0, *(pytest.param(i, marks=pytest.mark.long) for i in (1, 2))])
@pytest.mark.parametrize("name", LIVES)
def test_plan_equals_circuit_layer_by_layer(name, number, engine):
    trace = traced(name, number)
    for layer in range(LAYERS):
        new, labels = stepped(name, trace.points, trace.centers[layer], layer, engine)
        assert torch.equal(labels.long(), trace.labels[layer])
        away = (new - trace.centers[layer + 1]).abs().max().item()
        assert away <= 1e-9 * spread(trace.points), layer


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("name", [n for n in LIVES if LIVES[n][1] is not None])
def test_circuit_equals_algorithm(name, number):
    trace = traced(name, number)
    history = algorithms.run(LIVES[name][1], trace.points.numpy(), trace.centers[0].numpy(), LAYERS)
    np.testing.assert_array_equal(trace.labels.numpy(), history.labels)
    away = np.abs(trace.centers.numpy() - history.centers).max()
    assert away <= 1e-9 * spread(trace.points)


@pytest.mark.parametrize("depth", [1, 4])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimator_equals_circuit(name, depth, engine):
    """With a fixed number of iterations; labels belong to the last centers."""
    trace = traced(name, 0)
    k = trace.centers.shape[1]
    model = clone(ESTIMATORS[name]).set_params(
        n_clusters=k, init=trace.centers[0], max_iter=depth, tol=0.0, engine=engine
    )
    model.fit(trace.points)
    away = (model.cluster_centers_ - trace.centers[depth]).abs().max().item()
    assert away <= 1e-9 * spread(trace.points)
    assert torch.equal(model.predict(trace.points).long(), trace.labels[depth])


def test_medoids_draw_for_draw(engine):
    """The plan and the circuit draw the same points from the same seed."""
    points, centers = problem("medoids", 5)
    trace = lf.Circuit(recipes.medoids(2.0), points.shape[1], len(centers))(
        points, centers, 20, seed=SEED
    )
    for layer in range(20):
        new, _ = stepped("medoids", points, trace.centers[layer], layer, engine)
        assert torch.allclose(new, trace.centers[layer + 1], atol=1e-12)


def test_every_recipe_has_its_three_lives():
    made = [make() for make in (*recipes.IN_TABLE, *recipes.BEYOND_TABLE, *recipes.BOUNDED)]
    names = {recipe.name for recipe in made if isinstance(recipe, lf.Recipe)}
    assert {recipe.name for recipe, _ in LIVES.values()} == names
