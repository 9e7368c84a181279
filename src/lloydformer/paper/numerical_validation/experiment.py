"""Measure fig:numerical_validation: Lloyd's algorithm and circuits with gamma = 10^4.

Problem and runs are those of `lloydformer verify`.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer import algorithms
from lloydformer.algorithms.contract import squared_distances
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.scope import Scope
from lloydformer.verify.finite_temperature import (
    FEWER_LAYERS,
    FIGURE,
    GAMMA,
    N_LAYERS,
    figure_problem,
    lloyd_difference,
    median_weight_on_itself,
    run_in_encoder_cross,
    run_in_every_head,
    run_lloyd,
)
from lloydformer.verify.mixture import MixtureSize

_SHOWN = 1500
"""Number of points in a picture; more would overlap."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """The two literal circuits with their n x n attention, and many draws of soft k-means."""
    problem = figure_problem(scope.seed, FIGURE, scope.device)
    seeds = range(scope.seed, scope.seed + scope.count(quick=20, full=200))
    scales = {f"scale-{s}": partial(draws, replace(FIGURE, scale=s), seeds) for s in (1, 10)}
    return {
        "circuit": partial(in_encoder_cross, *problem),
        "every-head": partial(in_every_head, *problem),
        **scales,
    }


def in_encoder_cross(points: Tensor, centers: Tensor) -> Record:
    """Lloyd's algorithm, the literal circuit, and their differences.

    apart: the largest distance of a center to Lloyd's, at the start and after each layer.
    differing: points whose final labels differ, and both labels.
    """
    lloyd, trace = run_lloyd(points, centers), run_in_encoder_cross(points, centers)
    shown = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:_SHOWN]
    theirs, labels = trace.centers.cpu().numpy(), trace.labels[-1].cpu().numpy()
    apart = np.linalg.norm(theirs - lloyd.centers, axis=2).max(axis=1)
    rows = np.flatnonzero(labels != lloyd.labels[-1])
    return {
        "points": _rounded(points[shown], 4),
        "lloyd": _history(points, lloyd.centers, lloyd.labels[-1][shown.numpy()]),
        "transformer": _history(points, theirs, labels[shown.numpy()]),
        **asdict(lloyd_difference(lloyd, trace)),
        "apart": [float(f"{value:.4g}") for value in apart],
        "differing": {
            "points": _rounded(points[rows], 4),
            "lloyd": lloyd.labels[-1][rows].tolist(),
            "transformer": labels[rows].tolist(),
        },
    }


def in_every_head(points: Tensor, centers: Tensor) -> Record:
    """The circuit with gamma in every head; itself: a point's median weight on itself."""
    trace = run_in_every_head(points, centers)
    found = lloyd_difference(run_lloyd(points, centers, FEWER_LAYERS), trace)
    return {"itself": round(median_weight_on_itself(trace), 4), **asdict(found)}


def draws(size: MixtureSize, seeds: range) -> Record:
    """The difference of soft k-means with GAMMA to Lloyd's, for several draws of the data."""
    found = []
    for seed in seeds:
        points, centers = figure_problem(seed, size)
        soft = algorithms.run(algorithms.Soft(GAMMA), points.numpy(), centers.numpy(), N_LAYERS)
        found.append(asdict(lloyd_difference(run_lloyd(points, centers), soft, size.scale)))
    return {"scale": size.scale, "draws": found}


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
        "every_head": found["every-head"],
        "draws": {str(found[f"scale-{s}"]["scale"]): found[f"scale-{s}"]["draws"] for s in (1, 10)},
    }
