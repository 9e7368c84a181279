"""Measure fig:numerical_validation: Lloyd's algorithm and circuits with gamma = 10^4."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer import algorithms
from lloydformer.algorithms.contract import squared_distances
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.trace import Trace
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.mixture import MixtureSize, mixture
from lloydformer.paper.scope import Scope

GAMMA = 1e4
N_LAYERS, FEWER_LAYERS = 10, 5
"""Layers of the circuit, and of the circuit as printed, which fails much earlier."""
PROBLEM = MixtureSize(clusters=5, dimensions=2, scale=1, points=10_000)
_SHOWN = 1500
"""Number of points in a picture; more would overlap."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """The two literal circuits with their n x n attention, and many draws of soft k-means."""
    count = scope.count(quick=20, full=200)
    return {
        "circuit": partial(circuit, *problem(scope.seed, PROBLEM, scope.device)),
        "printed": partial(as_printed, *problem(scope.seed, PROBLEM, scope.device)),
        **{
            f"scale-{scale}": partial(
                draws, replace(PROBLEM, scale=scale), range(scope.seed, scope.seed + count)
            )
            for scale in (1, 10)
        },
    }


def problem(seed: int, size: MixtureSize, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """The points of a mixture and its initial centers, in float64."""
    points, centers = mixture(size, torch.Generator().manual_seed(seed))
    return points.double().to(device), centers.double().to(device)


def circuit(points: Tensor, centers: Tensor) -> Record:
    """Lloyd's algorithm, and the literal circuit with gamma in the encoder's cross-attention.

    The decoder's cross-attention is linear; both self-attentions have infinite gamma.
    """
    lloyd = _lloyd(points, centers, N_LAYERS)
    trace = _run(recipes.soft(GAMMA), points, centers, N_LAYERS)
    shown = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:_SHOWN]
    return {
        "points": _rounded(points[shown], 4),
        "lloyd": _history(points, lloyd.centers, lloyd.labels[-1][shown.numpy()]),
        "transformer": _history(points, *_final(trace, shown)),
        **_differences(lloyd, trace.centers.cpu().numpy(), trace.labels.cpu().numpy()),
    }


def _final(trace: Trace, shown: Tensor) -> tuple[np.ndarray, np.ndarray]:
    """All centers, and the last labels of the points that are shown."""
    return trace.centers.cpu().numpy(), trace.labels[-1].cpu()[shown].numpy()


def as_printed(points: Tensor, centers: Tensor) -> Record:
    """The circuit with gamma in every head.

    Self-attention is then not the identity, so it does not cancel the residual.
    """
    recipe = recipes.lloyd()
    for slot, head in recipe.heads.items():
        finite = replace(head, activation=Softmax(GAMMA))
        recipe = replace(recipe, **{slot: finite})  # type: ignore[arg-type]
    name = "layers.1.encoder_self.attention"
    trace = _run(recipe, points, centers, FEWER_LAYERS, keep=(name,))
    lloyd = _lloyd(points, centers, FEWER_LAYERS)
    return {
        "itself": round(trace[name].diagonal().median().item(), 4),
        **_differences(lloyd, trace.centers.cpu().numpy(), trace.labels.cpu().numpy()),
    }


def draws(size: MixtureSize, seeds: range) -> Record:
    """The difference of soft k-means with GAMMA to Lloyd's, for several draws of the data."""
    found = []
    for seed in seeds:
        points, centers = problem(seed, size)
        soft = algorithms.run(algorithms.Soft(GAMMA), points.numpy(), centers.numpy(), N_LAYERS)
        lloyd = _lloyd(points, centers, N_LAYERS)
        found.append(_differences(lloyd, soft.centers, soft.labels))
    return {"scale": size.scale, "draws": found}


def _lloyd(points: Tensor, centers: Tensor, n_layers: int) -> algorithms.History:
    plain = (points.cpu().numpy(), centers.cpu().numpy())
    return algorithms.run(algorithms.Lloyd(), *plain, n_layers)


def _run(
    recipe: Recipe, points: Tensor, centers: Tensor, n_layers: int, keep: tuple[str, ...] = ()
) -> Trace:
    made = Circuit(recipe, points.shape[1], len(centers))
    return made(points, centers, n_layers, keep=keep)


def _differences(lloyd: algorithms.History, centers: np.ndarray, labels: np.ndarray) -> Record:
    """The largest difference of centers, and the number of labels that differ in each layer."""
    return {
        "centers": float(f"{np.abs(centers - lloyd.centers).max():.4g}"),
        "labels": (labels != lloyd.labels).sum(axis=1).tolist(),
        "of": lloyd.labels.shape[1],
    }


def _history(points: Tensor, centers: np.ndarray, labels: np.ndarray) -> Record:
    """The objective, the centers, and the last labels as one string of digits."""
    rows = points.cpu().numpy()
    squares = [squared_distances(rows, c).min(axis=1).sum() for c in centers]
    return {
        "objective": [float(f"{square:.8g}") for square in squares],
        "centers": _rounded(torch.as_tensor(centers), 5),
        "labels": "".join(map(str, labels.tolist())),
    }


def _rounded(rows: Tensor, digits: int) -> list[Any]:
    return np.round(rows.cpu().numpy(), digits).tolist()


def result(found: Mapping[str, Record]) -> Record:
    """`rows`: the objective at the start and after each layer, Lloyd's and the circuit's."""
    run = found["circuit"]
    pairs = zip(run["lloyd"]["objective"], run["transformer"]["objective"], strict=True)
    return {
        "rows": {str(layer): list(pair) for layer, pair in enumerate(pairs)},
        "run": run,
        "printed": found["printed"],
        "draws": {str(found[f"scale-{s}"]["scale"]): found[f"scale-{s}"]["draws"] for s in (1, 10)},
    }
