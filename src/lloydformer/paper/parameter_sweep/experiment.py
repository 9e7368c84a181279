"""Measure fig:parameter_sweep: run soft k-means and Lloyd's on many data sets, and summarise."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.parameter_sweep.runs import SweepOutcome, outcome
from lloydformer.paper.parameter_sweep.settings import (
    AXES,
    DIMENSIONS,
    GAMMAS,
    N_LAYERS,
    authors_losses,
    layer,
    levels,
)
from lloydformer.paper.parameter_sweep.summary import (
    Losses,
    agreement,
    by_chance,
    by_level,
    by_pair,
    corner,
    on_the_grid,
)
from lloydformer.paper.scope import Scope
from lloydformer.verify.mixture import MixtureSize

_AGAIN_UP_TO = 16681
"""Data sets with at most this many points are drawn twice, to measure the effect of chance."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece for each layer of a hundred data sets, up to all hundred layers.

    A layer has all levels equally often, so that any number of layers can be compared. The full
    protocol has all layers, which are the authors' 30,000 runs.
    """
    count = min(scope.count(quick=5, full=N_LAYERS), N_LAYERS)
    return {f"layer-{number:02}": partial(_layer, number, scope) for number in range(count)}


def _layer(number: int, scope: Scope) -> Record:
    sizes = list(layer(number))
    few = [size for size in sizes if size.points <= _AGAIN_UP_TO]
    return {
        "runs": [_run(s, outcome(s, scope.seed, scope.device)) for s in sizes],
        "again": [_run(s, outcome(s, scope.seed + 1, scope.device)) for s in few],
    }


def _run(size: MixtureSize, found: SweepOutcome) -> Record:
    return {"levels": levels(size), "losses": found.losses, "apart": found.apart}


def result(found: Mapping[str, Record]) -> Record:
    """Our losses and the authors': means by level and by pair of levels, and their agreement."""
    runs = [run for piece in found.values() for run in piece["runs"]]
    ours, theirs = on_the_grid(runs), authors_losses()
    again = on_the_grid([run for piece in found.values() for run in piece["again"]])
    both = {"ours": ours, "authors": theirs}
    means = {whose: by_level(losses) for whose, losses in both.items()}
    return {
        "rows": _rows(means),
        "counts": {"ours": len(GAMMAS) * len(runs), "authors": theirs.size},
        "without_loss": {
            "ours": sum(loss is None for run in runs for loss in run["losses"]),
            "authors": int(np.isnan(theirs).sum()),
        },
        "by_level": means,
        "by_pair": {whose: by_pair(losses) for whose, losses in both.items()},
        "corners": {whose: _corners(losses) for whose, losses in both.items()},
        "agreement": agreement(ours, theirs),
        "by_chance": by_chance(ours, again, theirs),
        "apart": _apart(runs),
        "runs": [_line(run) for run in runs],
    }


def _rows(means: dict[str, dict[str, Record]]) -> Record:
    """The mean Loss at every level: ours for each gamma, then the authors'."""
    return {
        f"{name} {level}": [
            *means["ours"][name]["mean"][place],
            *means["authors"][name]["mean"][place],
        ]
        for name, axis in AXES.items()
        for place, level in enumerate(axis)
    }


def _corners(losses: Losses) -> dict[str, float | None]:
    """Means at the ends of the ranges, which the claims about scaling and gamma compare."""
    return {
        "many clusters, scale 1": corner(losses, 1, Clusters=-1, Scale=0),
        "many clusters, scale 10": corner(losses, 1, Clusters=-1, Scale=-1),
        "many points, scale 1": corner(losses, 1, Points=-1, Scale=0),
        "many points, scale 10": corner(losses, 1, Points=-1, Scale=-1),
        "many clusters, gamma 1": corner(losses, 1, Clusters=-1),
        "many clusters, gamma 100": corner(losses, 100, Clusters=-1),
        "many points, gamma 1": corner(losses, 1, Points=-1),
        "many points, gamma 100": corner(losses, 100, Points=-1),
        "scale 10, gamma 1": corner(losses, 1, Scale=-1),
        "scale 1, gamma 100": corner(losses, 100, Scale=0),
    }


def _apart(runs: list[Record]) -> list[float]:
    """The mean squared distance of two points at scale 1, for each dimension."""
    each = [[run["apart"] for run in runs if run["levels"][1] == d] for d in range(len(DIMENSIONS))]
    return [round(float(np.mean(found)), 5) for found in each]


def _line(run: Record) -> str:
    """A run as text: clusters, dimensions, scale, points, and the Loss for each gamma."""
    values = [axis[level] for axis, level in zip(AXES.values(), run["levels"], strict=True)]
    return " ".join([*map(str, values), *("-" if x is None else f"{x:.5g}" for x in run["losses"])])
