"""Measure fig:parameter_sweep: soft k-means and Lloyd's on many data sets, and their statistics.

The data sets come in slices of a hundred, with every level of each parameter equally often in each.
A run is compared with Lloyd's algorithm from the same start; the authors' runs are read from their
published table.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.resources import as_file, files

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy.stats import spearmanr
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import leaf_rows
from lloydformer.engines import choose
from lloydformer.paper.artefact import Piece, Record, Scope
from lloydformer.paper.verify.finite_temperature import MixtureSize, draw_mixture
from lloydformer.plans.assign import NearestDistances
from lloydformer.plans.contract import Plan, Sums, apply_update
from lloydformer.plans.lower import lower
from lloydformer.plans.session import Session

# Parameters by the authors' names, in the order of the axes of `read_authors_losses`.
AXES = {
    "Clusters": tuple(range(5, 55, 5)),
    "Dimensions": tuple(range(1, 11)),
    "Scale": tuple(range(1, 11)),
    "Points": (100, 278, 774, 2154, 5994, 16681, 46415, 129154, 359381, 1000000),
}
GAMMAS = (1, 10, 100)
# A slice is a hundred data sets; all slices together are the ten thousand data sets of the grid.
N_SLICES = 100
# Steps of either algorithm before the objectives are compared: the paper's ten layers.
N_STEPS = 10
# Data sets with at most this many points are drawn twice, to measure the effect of chance. The four
# larger sizes have 98 % of all points, so that they would double the time.
MAX_POINTS_DRAWN_TWICE = 16681
# The pairs of parameters of the 2D matrices, as in the authors' files.
PANELS = {
    "E": ("Clusters", "Scale"),
    "F": ("Dimensions", "Clusters"),
    "G": ("Points", "Dimensions"),
    "H": ("Points", "Clusters"),
}
# Settings with a mean Loss above this can be ranked; below it a Loss is noise around 0.
MIN_RANKABLE_LOSS = 0.01

Losses = Float[ndarray, "10 10 10 10 3"]


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return a piece for each slice of a hundred data sets, up to all hundred slices.

    A slice has all levels equally often, so that any number of slices can be compared. The full
    protocol has all slices, which are the authors' 30,000 runs.
    """
    count = min(scope.count(quick=5, full=N_SLICES), N_SLICES)
    return {f"slice-{number:02}": partial(measure, number, scope) for number in range(count)}


def measure(number: int, scope: Scope) -> Record:
    """Return the runs of a slice, and those of its small data sets drawn again."""
    sizes = list(choose_slice(number))
    small = [size for size in sizes if size.points <= MAX_POINTS_DRAWN_TWICE]
    return {
        "runs": [run_data_set(size, scope.seed, scope.device) for size in sizes],
        "again": [run_data_set(size, scope.seed + 1, scope.device) for size in small],
    }


def choose_slice(number: int) -> Iterator[MixtureSize]:
    """Yield the sizes of a hundred data sets: each level of each axis ten times.

    A slice has every pair of clusters and dimensions once; the pair determines the scale and the
    number of points. All other pairs of levels occur once, too, except that only half of the pairs
    of clusters and points occur, twice each. Ten consecutive slices contain all triples of
    clusters, dimensions and scale; all hundred slices contain each of the ten thousand data sets
    once.
    """
    # a and b are levels of clusters and dimensions, and the other two are sums modulo 10. Since 2 b
    # is even, a given a meets five levels of points only. by_points is shifted by one more after
    # every ten slices, so that no data set comes twice.
    by_scale = number % 10
    by_points = number // 10 + number
    for a, clusters in enumerate(AXES["Clusters"]):
        for b, dimensions in enumerate(AXES["Dimensions"]):
            scale = AXES["Scale"][(by_scale - a - b) % 10]
            yield MixtureSize(
                clusters, dimensions, scale, AXES["Points"][(by_points + a + 2 * b) % 10]
            )


def find_levels(size: MixtureSize) -> tuple[int, ...]:
    """Return the index of each parameter's value on AXES."""
    values = (size.clusters, size.dimensions, size.scale, size.points)
    return tuple(axis.index(v) for axis, v in zip(AXES.values(), values, strict=True))


def run_data_set(size: MixtureSize, seed: int, device: str = "cpu") -> Record:
    """Draw the data and run Lloyd's once and soft k-means for each gamma, from the same start.

    losses: for each gamma the log objective of soft k-means minus that of Lloyd's, after ten
    steps; None if either of them loses a cluster, whose mean is then 0/0. levels: the index of each
    parameter's value on AXES. apart: the mean squared distance of two points, at scale 1.
    """
    points, centers = draw_data_set(size, seed, device)
    # the mean squared distance of two points is twice the total variance
    apart = 2 * points.var(dim=0, correction=0).sum().item() / size.scale**2
    data = TensorBlocks(points, leaf=leaf_rows(points.device, *centers.shape[::-1]))
    with choose("auto", data).open(data) as session:
        start = data.layout.to_row_units(centers)
        lloyd = measure_log_objective(lower(recipes.lloyd()), session, start)
        # The authors took both self-attentions as the identity and the decoder's cross-attention
        # as linear; that is the lowered recipe soft(gamma).
        plans = [lower(recipes.soft(float(gamma))) for gamma in GAMMAS]
        soft = [measure_log_objective(plan, session, start) for plan in plans]
    # six decimals are the accuracy of float32
    losses = [None if s is None or lloyd is None else round(s - lloyd, 6) for s in soft]
    return {"levels": find_levels(size), "losses": losses, "apart": round(apart, 5)}


def draw_data_set(
    size: MixtureSize, seed: int, device: str = "cpu"
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k d"]]:
    """Return the points of a data set, and k of them as initial centers."""
    # the levels give each data set a seed of its own
    sequence = np.random.SeedSequence([seed, *find_levels(size)])
    own_seed = int(sequence.generate_state(1, np.uint64)[0] >> 1)
    return draw_mixture(size, torch.Generator(device).manual_seed(own_seed))


def measure_log_objective(plan: Plan, session: Session, centers: Tensor) -> float | None:
    """Run all steps and return the log objective; None if a cluster has no mass in some step."""
    dtype = session.layout.dtype
    for number in range(N_STEPS):
        update = plan.step(session, centers.to(dtype), number).update
        assert isinstance(update, Sums)
        # the mean would be 0/0; 148 of the authors' runs have no Loss either
        if bool((update.masses == 0).any()):
            return None
        centers = apply_update(update, centers)
    return float(torch.log(session.fold(NearestDistances(centers.to(dtype)))[0]))


@cache
def read_authors_losses() -> Losses:
    """Return the Loss of each of the authors' 30,000 runs, by AXES and GAMMAS; NaN if missing.

    This is the published table `klic_parameter_sweep.csv` as an array.
    """
    with (
        as_file(files("lloydformer.paper.parameter_sweep") / "authors_losses.npz") as path,
        np.load(path) as saved,
    ):
        for name, axis in {**AXES, "Gamma": GAMMAS}.items():
            assert tuple(saved[name.lower()]) == axis
        return saved["loss"].astype(float)


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return our losses and the authors': means by level and pair of levels, and agreement."""
    runs = [run for piece in outputs.values() for run in piece["runs"]]
    again = arrange_on_grid([run for piece in outputs.values() for run in piece["again"]])
    ours, theirs = arrange_on_grid(runs), read_authors_losses()
    both = {"ours": ours, "authors": theirs}
    means = {whose: average_by_level(losses) for whose, losses in both.items()}
    n_dimensions = range(len(AXES["Dimensions"]))
    apart = [[run["apart"] for run in runs if run["levels"][1] == d] for d in n_dimensions]
    return {
        "rows": {
            f"{name} {level}": [
                *means["ours"][name]["mean"][place],
                *means["authors"][name]["mean"][place],
            ]
            for name, axis in AXES.items()
            for place, level in enumerate(axis)
        },
        "counts": {"ours": len(GAMMAS) * len(runs), "authors": theirs.size},
        "without_loss": {
            "ours": sum(loss is None for run in runs for loss in run["losses"]),
            "authors": int(np.isnan(theirs).sum()),
        },
        "by_level": means,
        "by_pair": {whose: average_by_pair(losses) for whose, losses in both.items()},
        "corners": {whose: average_corners(losses) for whose, losses in both.items()},
        "agreement": measure_agreement(ours, theirs),
        "by_chance": correlate_draws(ours, again, theirs),
        "apart": [round(float(np.mean(one)), 5) for one in apart],
        "runs": [format_run(run) for run in runs],
    }


def arrange_on_grid(runs: Sequence[Record]) -> Losses:
    """Return the losses of these runs by AXES and GAMMAS; NaN if there is no run or no Loss."""
    grid = np.full(read_authors_losses().shape, np.nan)
    for one in runs:
        grid[tuple(one["levels"])] = [np.nan if x is None else x for x in one["losses"]]
    return grid


def average_by_level(losses: Losses) -> dict[str, Record]:
    """Return for each parameter the mean and standard deviation at each level, by gamma."""
    found: dict[str, Record] = {}
    for axis, name in enumerate(AXES):
        others = tuple(i for i in range(len(AXES)) if i != axis)
        found[name] = {
            "mean": np.nanmean(losses, axis=others).round(5).tolist(),
            "deviation": np.nanstd(losses, axis=others).round(5).tolist(),
        }
    return found


def average_by_pair(losses: Losses) -> dict[str, list[list[float | None]]]:
    """Return for each panel the mean over all other parameters and gamma, by pairs of levels.

    None if no run has the pair.
    """
    names, found = list(AXES), {}
    for panel, (rows, columns) in PANELS.items():
        by_cell = np.moveaxis(losses, (names.index(rows), names.index(columns)), (0, 1))
        found[panel] = [[_mean(cell) for cell in row] for row in by_cell]
    return found


def average_corners(losses: Losses) -> dict[str, float | None]:
    """Return means at the ends of the ranges, which the claims on scaling and gamma compare."""

    def average(gamma: int, **ends: int) -> float | None:
        where: list[int | slice] = [ends.get(name, slice(None)) for name in AXES]
        return _mean(losses[(*where, GAMMAS.index(gamma))])

    return {
        "many clusters, scale 1": average(1, Clusters=-1, Scale=0),
        "many clusters, scale 10": average(1, Clusters=-1, Scale=-1),
        "many points, scale 1": average(1, Points=-1, Scale=0),
        "many points, scale 10": average(1, Points=-1, Scale=-1),
        "many clusters, gamma 1": average(1, Clusters=-1),
        "many clusters, gamma 100": average(100, Clusters=-1),
        "many points, gamma 1": average(1, Points=-1),
        "many points, gamma 100": average(100, Points=-1),
        "scale 10, gamma 1": average(1, Scale=-1),
        "scale 1, gamma 100": average(100, Scale=0),
    }


def _mean(losses: ndarray) -> float | None:
    finite = losses[np.isfinite(losses)]
    return round(float(finite.mean()), 5) if finite.size else None


def measure_agreement(ours: Losses, theirs: Losses) -> Record:
    """Return correlations of our losses with the authors'.

    all, by_gamma: rank correlation of all runs. worth: rank correlation of the runs that can be
    ranked, for which the mean of the authors' Loss over clusters and points, at the same dimension,
    scale and gamma, is above MIN_RANKABLE_LOSS. linear: linear correlation of all runs.
    """
    # ranks, since a Loss varies by several orders of magnitude between settings
    there = np.isfinite(ours) & np.isfinite(theirs)
    rankable = there & (np.nanmean(theirs, axis=(0, 3), keepdims=True) > MIN_RANKABLE_LOSS)
    return {
        "all": _rank_correlation(ours, theirs, there),
        # saved results have this key, so it stays
        "worth": _rank_correlation(ours, theirs, rankable),
        "linear": round(float(np.corrcoef(ours[there], theirs[there])[0, 1]), 4),
        "by_gamma": [
            _rank_correlation(ours[..., g], theirs[..., g], there[..., g])
            for g in range(len(GAMMAS))
        ],
    }


def correlate_draws(first: Losses, again: Losses, theirs: Losses) -> Record:
    """Return rank correlations between two draws of ours, and with the authors', on common runs."""
    there = np.isfinite(first) & np.isfinite(again) & np.isfinite(theirs)
    return {
        "ours": _rank_correlation(first, again, there),
        "authors": _rank_correlation(first, theirs, there),
    }


def _rank_correlation(one: ndarray, other: ndarray, there: ndarray) -> Record:
    """Return Spearman's correlation over the runs in `there`, and their number."""
    value = spearmanr(one[there], other[there]).statistic
    return {"runs": int(there.sum()), "correlation": round(float(value), 4)}


def format_run(one: Record) -> str:
    """Return a run as text: clusters, dimensions, scale, points, and the Loss for each gamma."""
    values = [axis[level] for axis, level in zip(AXES.values(), one["levels"], strict=True)]
    return " ".join([*map(str, values), *("-" if x is None else f"{x:.5g}" for x in one["losses"])])
