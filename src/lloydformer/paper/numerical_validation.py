"""fig:numerical_validation: Lloyd's algorithm and the transformer with gamma = 10^4."""

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
from lloydformer.paper.artefact import Artefact, Found, Piece, Table
from lloydformer.paper.scope import Scope
from lloydformer.paper.sweep_runs import mixture
from lloydformer.paper.sweep_settings import Setting
from lloydformer.paper.validation_claims import claims
from lloydformer.paper.validation_pictures import pictures

GAMMA = 1e4
N_LAYERS, FEWER_LAYERS = 10, 5
"""Of the circuit, and of the one as printed, which has gone wrong long before."""
PROBLEM = Setting(clusters=5, dimensions=2, scale=1, points=10_000)
_SHOWN = 1500
"""Points of a picture; all of them would be one blot."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """The two literal circuits, n x n attention included, and many draws of the lowered one."""
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


def problem(seed: int, setting: Setting, device: str = "cpu") -> tuple[Tensor, Tensor]:
    """Five Gaussians in the plane and five of the points as initial centers, in float64."""
    points, centers = mixture(setting, torch.Generator().manual_seed(seed))
    return points.double().to(device), centers.double().to(device)


def circuit(points: Tensor, centers: Tensor) -> Found:
    """Lloyd's, and the literal circuit with gamma in the encoder's cross-attention.

    The decoder's cross-attention is linear and both self-attentions are in the limit.
    """
    lloyd = _lloyd(points, centers, N_LAYERS)
    trace = _run(recipes.soft(GAMMA), points, centers, N_LAYERS)
    shown = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:_SHOWN]
    return {
        "points": _plain(points[shown], 4),
        "lloyd": _history(points, lloyd.centers, lloyd.labels[-1][shown.numpy()]),
        "transformer": _history(points, *_of(trace, shown)),
        **_apart(lloyd, trace.centers.cpu().numpy(), trace.labels.cpu().numpy()),
    }


def _of(trace: Trace, shown: Tensor) -> tuple[np.ndarray, np.ndarray]:
    return trace.centers.cpu().numpy(), trace.labels[-1].cpu()[shown].numpy()


def as_printed(points: Tensor, centers: Tensor) -> Found:
    """gamma in every head: then self-attention is not the identity, and nothing cancels."""
    recipe = recipes.lloyd()
    for slot, head in recipe.heads.items():
        finite = replace(head, activation=Softmax(GAMMA))
        recipe = replace(recipe, **{slot: finite})  # type: ignore[arg-type]
    name = "layers.1.encoder_self.attention"
    trace = _run(recipe, points, centers, FEWER_LAYERS, keep=(name,))
    lloyd = _lloyd(points, centers, FEWER_LAYERS)
    return {
        "itself": round(trace[name].diagonal().median().item(), 4),
        **_apart(lloyd, trace.centers.cpu().numpy(), trace.labels.cpu().numpy()),
    }


def draws(setting: Setting, seeds: range) -> Found:
    """How far soft k-means with this gamma is from Lloyd's, for several draws of the data."""
    found = []
    for seed in seeds:
        points, centers = problem(seed, setting)
        soft = algorithms.run(algorithms.Soft(GAMMA), points.numpy(), centers.numpy(), N_LAYERS)
        lloyd = _lloyd(points, centers, N_LAYERS)
        found.append(_apart(lloyd, soft.centers, soft.labels))
    return {"scale": setting.scale, "draws": found}


def _lloyd(points: Tensor, centers: Tensor, n_layers: int) -> algorithms.History:
    plain = (points.cpu().numpy(), centers.cpu().numpy())
    return algorithms.run(algorithms.Lloyd(), *plain, n_layers)


def _run(
    recipe: Recipe, points: Tensor, centers: Tensor, n_layers: int, keep: tuple[str, ...] = ()
) -> Trace:
    made = Circuit(recipe, points.shape[1], len(centers))
    return made(points, centers, n_layers, keep=keep)


def _apart(lloyd: algorithms.History, centers: np.ndarray, labels: np.ndarray) -> Found:
    """The largest difference of centers over all layers; labels that differ, layer by layer."""
    return {
        "centers": float(f"{np.abs(centers - lloyd.centers).max():.4g}"),
        "labels": (labels != lloyd.labels).sum(axis=1).tolist(),
        "of": lloyd.labels.shape[1],
    }


def _history(points: Tensor, centers: np.ndarray, labels: np.ndarray) -> Found:
    """What a row of panels shows: the objective, the centers, and the last labels."""
    rows = points.cpu().numpy()
    squares = [squared_distances(rows, c).min(axis=1).sum() for c in centers]
    return {
        "objective": [float(f"{square:.8g}") for square in squares],
        "centers": _plain(torch.as_tensor(centers), 5),
        "labels": "".join(map(str, labels.tolist())),
    }


def _plain(rows: Tensor, digits: int) -> list[Any]:
    return np.round(rows.cpu().numpy(), digits).tolist()


def result(found: Mapping[str, Found]) -> Found:
    """`rows`: the objective before each layer and after the last, Lloyd's and the circuit's."""
    run = found["circuit"]
    pairs = zip(run["lloyd"]["objective"], run["transformer"]["objective"], strict=True)
    return {
        "rows": {str(layer): list(pair) for layer, pair in enumerate(pairs)},
        "run": run,
        "printed": found["printed"],
        "draws": {str(found[f"scale-{s}"]["scale"]): found[f"scale-{s}"]["draws"] for s in (1, 10)},
    }


def tables(result: Found) -> list[Table]:
    """The objective, layer by layer, and how many labels differ there."""
    rows = [
        [layer, *(f"{value:.6g}" for value in pair), str(differ)]
        for (layer, pair), differ in zip(
            result["rows"].items(), [0, *result["run"]["labels"]], strict=True
        )
    ]
    return [Table("k-means objective, and labels that differ", ["layers", "Lloyd's", "transformer",
                  "labels that differ"], rows)]  # fmt: skip


ARTEFACT = Artefact(
    "numerical-validation",
    ("fig:numerical_validation",),
    "Numerical validation",
    "Ten layers of the literal circuit, its n x n attention included, beside ten iterations of "
    "Lloyd's algorithm, with a finite γ = 10⁴ in the encoder's cross-attention.",
    pieces, result, claims, tables, pictures,
)  # fmt: skip
