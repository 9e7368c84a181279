"""Statistics of the parameter sweep: means by level and pairs of levels, rank correlations."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from scipy.stats import spearmanr

from lloydformer.paper.artefact import Record
from lloydformer.paper.parameter_sweep.settings import AXES, GAMMAS, authors_losses

PANELS = {
    "E": ("Clusters", "Scale"),
    "F": ("Dimensions", "Clusters"),
    "G": ("Points", "Dimensions"),
    "H": ("Points", "Clusters"),
}
"""The pairs of parameters of the 2D matrices, as in the authors' files."""
Losses = Float[ndarray, "10 10 10 10 3"]
_NAMES = tuple(AXES)
_WORTH = 0.01
"""Settings with a mean Loss above this can be ranked; below it a Loss is noise."""


def on_the_grid(runs: Sequence[Record]) -> Losses:
    """The losses of these runs by AXES and GAMMAS; NaN if there is no run or no Loss."""
    grid = np.full(authors_losses().shape, np.nan)
    for run in runs:
        grid[tuple(run["levels"])] = [np.nan if x is None else x for x in run["losses"]]
    return grid


def by_level(losses: Losses) -> dict[str, Record]:
    """For each parameter, the mean and standard deviation at each of its levels, by gamma."""
    found = {}
    for axis, name in enumerate(_NAMES):
        others = tuple(i for i in range(4) if i != axis)
        found[name] = {
            "mean": _rounded(np.nanmean(losses, axis=others)),
            "deviation": _rounded(np.nanstd(losses, axis=others)),
        }
    return found


def by_pair(losses: Losses) -> dict[str, list[list[float | None]]]:
    """For each panel the mean over all other parameters and gamma, by pairs of levels.

    None if no run has the pair.
    """
    found = {}
    for panel, (rows, columns) in PANELS.items():
        kept = (_NAMES.index(rows), _NAMES.index(columns))
        moved = np.moveaxis(losses, kept, (0, 1))
        found[panel] = [[_mean(cell) for cell in row] for row in moved]
    return found


def corner(losses: Losses, gamma: int, **levels: int) -> float | None:
    """The mean Loss at this gamma and at these levels, given by index; None if there is no run."""
    where: list[int | slice] = [levels.get(name, slice(None)) for name in _NAMES]
    return _mean(losses[(*where, GAMMAS.index(gamma))])


def _mean(losses: ndarray) -> float | None:
    there = np.isfinite(losses)
    return round(float(losses[there].mean()), 5) if there.any() else None


def agreement(ours: Losses, theirs: Losses) -> Record:
    """Correlations of our losses with the authors'.

    all, by_gamma: rank correlation of all runs. worth: rank correlation where the mean of the
    authors' Loss over clusters and points, at the same dimension, scale and gamma, is above 0.01;
    elsewhere a Loss is noise around 0. linear: linear correlation of all runs.
    """
    there = np.isfinite(ours) & np.isfinite(theirs)
    worth = there & (np.nanmean(theirs, axis=(0, 3), keepdims=True) > _WORTH)
    return {
        "all": _rank(ours, theirs, there),
        "worth": _rank(ours, theirs, worth),
        "linear": round(float(np.corrcoef(ours[there], theirs[there])[0, 1]), 4),
        "by_gamma": [_rank(ours[..., g], theirs[..., g], there[..., g]) for g in range(3)],
    }


def by_chance(first: Losses, again: Losses, theirs: Losses) -> Record:
    """Rank correlation between two draws of ours, and with the authors', on the common runs."""
    there = np.isfinite(first) & np.isfinite(again) & np.isfinite(theirs)
    return {"ours": _rank(first, again, there), "authors": _rank(first, theirs, there)}


def _rank(one: ndarray, other: ndarray, there: ndarray) -> Record:
    """Spearman's correlation over the runs in `there`, and their number."""
    value = spearmanr(one[there], other[there]).statistic
    return {"runs": int(there.sum()), "correlation": round(float(value), 4)}


def falls_with_gamma(means: dict[str, Record]) -> list[int]:
    """The number of levels at which the mean falls with every larger gamma, and of all levels."""
    levels = [level for found in means.values() for level in found["mean"]]
    falling = sum(all(a > b for a, b in pairwise(level)) for level in levels)
    return [falling, len(levels)]


def slopes(found: Record) -> list[float]:
    """For each gamma, the least-squares slope of the mean Loss over the levels."""
    means = np.array(found["mean"])
    return [float(np.polyfit(range(len(means)), means[:, g], 1)[0]) for g in range(len(GAMMAS))]


def _rounded(values: ndarray) -> list[Any]:
    return np.round(values, 5).tolist()
