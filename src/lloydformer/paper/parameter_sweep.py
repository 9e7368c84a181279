"""fig:parameter_sweep: how near soft k-means comes to Lloyd's as the problem changes."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from lloydformer.paper.artefact import Artefact, Found, Piece, Table
from lloydformer.paper.scope import Scope
from lloydformer.paper.sweep_claims import claims
from lloydformer.paper.sweep_pictures import pictures
from lloydformer.paper.sweep_runs import Outcome, outcome
from lloydformer.paper.sweep_settings import (
    AXES,
    DIMENSIONS,
    GAMMAS,
    N_LAYERS,
    Setting,
    authors_losses,
    layer,
)
from lloydformer.paper.sweep_summary import (
    Losses,
    agreement,
    by_chance,
    by_level,
    by_pair,
    corner,
    on_the_grid,
)

_AGAIN_UP_TO = 16681
"""Settings with so few points are drawn a second time, to see what chance does."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Layers of a hundred data sets: all levels equally often, so that any number of layers will
    do. The full protocol is all hundred of them, which are the authors' 30,000 runs.
    """
    count = min(scope.count(quick=5, full=N_LAYERS), N_LAYERS)
    return {f"layer-{number:02}": partial(_layer, number, scope) for number in range(count)}


def _layer(number: int, scope: Scope) -> Found:
    settings = list(layer(number))
    few = [setting for setting in settings if setting.points <= _AGAIN_UP_TO]
    return {
        "runs": [_run(s, outcome(s, scope.seed, scope.device)) for s in settings],
        "again": [_run(s, outcome(s, scope.seed + 1, scope.device)) for s in few],
    }


def _run(setting: Setting, found: Outcome) -> Found:
    return {"levels": setting.levels, "losses": found.losses, "apart": found.apart}


def result(found: Mapping[str, Found]) -> Found:
    """Ours and the authors', by level and by pair of levels, and how they agree."""
    runs = [run for piece in found.values() for run in piece["runs"]]
    ours, theirs = on_the_grid(runs), authors_losses()
    again = on_the_grid([run for piece in found.values() for run in piece["again"]])
    both = {"ours": ours, "authors": theirs}
    levels = {whose: by_level(losses) for whose, losses in both.items()}
    return {
        "rows": _rows(levels),
        "counts": {"ours": len(GAMMAS) * len(runs), "authors": theirs.size},
        "without_loss": {
            "ours": sum(loss is None for run in runs for loss in run["losses"]),
            "authors": int(np.isnan(theirs).sum()),
        },
        "by_level": levels,
        "by_pair": {whose: by_pair(losses) for whose, losses in both.items()},
        "corners": {whose: _corners(losses) for whose, losses in both.items()},
        "agreement": agreement(ours, theirs),
        "by_chance": by_chance(ours, again, theirs),
        "apart": _apart(runs),
        "runs": [_line(run) for run in runs],
    }


def _rows(levels: dict[str, dict[str, Found]]) -> Found:
    """The mean Loss at every level: ours for each gamma, then the authors'."""
    return {
        f"{name} {level}": [
            *levels["ours"][name]["mean"][place],
            *levels["authors"][name]["mean"][place],
        ]
        for name, axis in AXES.items()
        for place, level in enumerate(axis)
    }


def _corners(losses: Losses) -> dict[str, float | None]:
    """Means at ends of the ranges, for what the text says of amending and of scaling."""
    return {
        "few clusters, scale 1": corner(losses, 1, Clusters=0, Scale=0),
        "many clusters, scale 10": corner(losses, 1, Clusters=-1, Scale=-1),
        "few points, scale 1": corner(losses, 1, Points=0, Scale=0),
        "many points, scale 10": corner(losses, 1, Points=-1, Scale=-1),
        "many clusters, gamma 100": corner(losses, 100, Clusters=-1),
        "many points, gamma 100": corner(losses, 100, Points=-1),
        "scale 10, gamma 1": corner(losses, 1, Scale=-1),
        "scale 1, gamma 100": corner(losses, 100, Scale=0),
    }


def _apart(runs: list[Found]) -> list[float]:
    """The mean squared distance of two points at scale 1, for each dimension."""
    of = [[run["apart"] for run in runs if run["levels"][1] == d] for d in range(len(DIMENSIONS))]
    return [round(float(np.mean(found)), 5) for found in of]


def _line(run: Found) -> str:
    """A run in short: clusters, dimensions, scale, points, and the Loss for each gamma."""
    at = [axis[level] for axis, level in zip(AXES.values(), run["levels"], strict=True)]
    return " ".join([*map(str, at), *("-" if x is None else f"{x:.5g}" for x in run["losses"])])


def tables(result: Found) -> list[Table]:
    """The mean Loss at every level, the authors' in brackets."""
    columns = ["", *(f"γ = {gamma} (authors)" for gamma in GAMMAS)]
    rows = [
        [name, *(f"{row[g]:.3f} ({row[g + 3]:.3f})" for g in range(len(GAMMAS)))]
        for name, row in result["rows"].items()
    ]
    return [Table("Log objective of the transformer minus Lloyd's: mean over all else", columns,
                  rows)]  # fmt: skip


ARTEFACT = Artefact(
    "parameter-sweep",
    ("fig:parameter_sweep", "asec:num-val"),
    "Parameter sweep",
    "The transformer with a finite gamma against Lloyd's algorithm, over the number of clusters, "
    "dimensions and points and the scale of the data. A run is soft k-means: the authors took "
    "both self-attentions as the identity and the decoder's cross-attention as linear.",
    pieces, result, claims, tables, pictures,
)  # fmt: skip
