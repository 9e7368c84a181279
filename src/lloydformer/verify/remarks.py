"""The remarks: model size, other parameters of the same algorithm, finite temperatures."""

from dataclasses import replace

import numpy as np
import torch
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group
from torch import Tensor

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.projections import on
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.subspaces import POSITION
from lloydformer.verify.finding import Finding, Statement, equality
from lloydformer.verify.problems import CONTINUOUS, draw


def size(rng: np.random.Generator) -> Finding:
    """The number of nonzero entries is 6 (d + k), for every n and T."""
    sizes = [(int(d), int(k)) for d, k in rng.integers(1, 60, size=(30, 2))]
    counts = [sum(int(b.count_nonzero()) for b in Circuit(recipes.lloyd(), d, k).buffers())
              for d, k in sizes]  # fmt: skip
    off = [float(abs(count - 6 * (d + k))) for count, (d, k) in zip(counts, sizes, strict=True)]
    return equality("rem:trf-size", "lloyd() has 6 (d + k) weights that are not zero", off,
                    "dense matrices hold 12 (d + k)^2 entries")  # fmt: skip


def other_parameters(rng: np.random.Generator) -> Finding:
    """R Q and R K in place of Q and K, with R orthogonal, give the same algorithm."""

    def deviation(recipe: Recipe) -> float:
        problem = draw(rng, CONTINUOUS[rng.integers(2)], n=(50, 150), d=(2, 10))
        points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
        circuit = Circuit(recipe, points.shape[1], len(centers))
        before = circuit(points, centers).centers
        for slot in recipe.heads:
            head = getattr(circuit.layers[0], slot)
            turn = torch.tensor(ortho_group.rvs(circuit.space.dim, random_state=rng))
            head.query, head.key = turn @ head.query, turn @ head.key
        return (circuit(points, centers).centers - before).abs().max().item() / problem.spread

    made = (recipes.lloyd(), recipes.lloyd_dot(), recipes.soft())
    return equality("rem:inf-params", "random rotations of Q and K give the same algorithm",
                    [deviation(recipe) for recipe in made for _ in range(10)])  # fmt: skip


def absorbed_temperature(rng: np.random.Generator) -> Finding:
    """sqrt(gamma) in Q and K is gamma in the soft-max (sec:results:lloyds)."""

    def deviation() -> float:
        problem, gamma = draw(rng, "uniform"), float(10 ** rng.uniform(-1, 1))
        scaled = gamma**0.5 * on(POSITION)
        absorbed = replace(recipes.soft(1.0).encoder_cross, query=scaled, key=scaled)
        pair = recipes.soft(gamma), replace(recipes.soft(1.0), encoder_cross=absorbed)
        points, centers = torch.tensor(problem.points), torch.tensor(problem.centers)
        first, second = (
            Circuit(r, points.shape[1], len(centers))(points, centers).centers for r in pair
        )
        return (first - second).abs().max().item() / problem.spread

    return equality("sec:results:lloyds", "gamma can be absorbed into Q and K",
                    [deviation() for _ in range(20)])  # fmt: skip


def _validation_problem(rng: np.random.Generator, one_start_each: bool) -> tuple[Tensor, Tensor]:
    """fig:numerical_validation: d 2, n 10000, k 5; Gaussians at least eight deviations apart."""
    while True:
        places = rng.uniform(size=(5, 2))
        if pdist(places).min() > 0.4:
            break
    component = rng.integers(5, size=10_000)
    points = places[component] + 0.05 * rng.normal(size=(10_000, 2))
    starts = [np.flatnonzero(component == j)[0] for j in range(5)] if one_start_each else range(5)
    return torch.tensor(points), torch.tensor(points[list(starts)])


def finite_temperature(rng: np.random.Generator) -> Finding:
    """gamma = 10^4 in the encoder's cross-attention, linear in the decoder's, else limits."""
    points, centers = _validation_problem(rng, one_start_each=True)
    history = algorithms.run(algorithms.Lloyd(), points.numpy(), centers.numpy(), 10)
    trace = Circuit(recipes.soft(1e4), 2, 5)(points, centers, 10)
    away = float(np.abs(trace.centers.numpy() - history.centers).max())
    differ = int((trace.labels.numpy() != history.labels).sum())
    return Finding("fig:numerical_validation", "gamma = 10^4 in encoder_cross matches Lloyd's", 1,
                   away, differ, away <= 1e-3 and differ == 0,
                   f"10 layers, one start in each component; {_random_start(rng)}")  # fmt: skip


def _random_start(rng: np.random.Generator) -> str:
    """Describe the result from a random start, where boundaries cut through components."""
    points, centers = (p.numpy() for p in _validation_problem(rng, one_start_each=False))
    exact, soft = (
        algorithms.run(a, points, centers, 10) for a in (algorithms.Lloyd(), algorithms.Soft(1e4))
    )
    differ = int((exact.labels != soft.labels).sum())
    away = np.abs(exact.centers - soft.centers).max()
    return f"from a random start {away:.1g} and {differ} of 100000 labels"


def all_finite(rng: np.random.Generator) -> Finding:
    """gamma = 10^4 in every head: self-attention is not the identity, and the circuit fails."""
    points, centers = _validation_problem(rng, one_start_each=False)
    recipe = recipes.lloyd()
    for slot, head in recipe.heads.items():
        recipe = replace(recipe, **{slot: replace(head, activation=Softmax(1e4))})  # type: ignore[arg-type]
    history = algorithms.run(algorithms.Lloyd(), points.numpy(), centers.numpy(), 5)
    trace = Circuit(recipe, 2, 5)(points, centers, 5, keep="layers.1.encoder_self.attention")
    diagonal = trace["layers.1.encoder_self.attention"].diagonal().median().item()
    away = float(np.abs(trace.centers.numpy() - history.centers).max())
    differ = int((trace.labels.numpy() != history.labels).sum())
    note = f"5 layers from a random start; a point's median weight on itself is {diagonal:.2g}"
    fails = away > 1e-2 and diagonal < 0.5
    return Finding("errata 11", "gamma = 10^4 in every head does not", 1, away, differ, fails, note)


REMARKS: tuple[Statement, ...] = (
    size, other_parameters, absorbed_temperature, finite_temperature, all_finite,
)  # fmt: skip
