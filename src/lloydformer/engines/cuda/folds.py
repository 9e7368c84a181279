"""Which kernels run which fold; those that decline return None."""

from collections.abc import Callable
from typing import Any

import torch

from lloydformer.engines.cuda.learned import nearest_costs
from lloydformer.engines.cuda.medoids import draw
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.oversampling import oversample
from lloydformer.engines.cuda.relocating import drawn, errors, halves, parted, removable
from lloydformer.engines.cuda.soft import shares
from lloydformer.engines.cuda.weighing import above, best, histogram, weighted, within
from lloydformer.plans.assign import (
    Cosines,
    Farthest,
    FarthestPoints,
    Measure,
    Moments,
    Nearest,
)
from lloydformer.plans.medoids import Draw
from lloydformer.plans.pruning import Parted, TwoNearest
from lloydformer.plans.robust import Above, Best, Weighted
from lloydformer.plans.seeding import Oversample
from lloydformer.plans.selection import Histogram
from lloydformer.plans.soft import Shares
from lloydformer.plans.splitting import Drawn, Errors, Halves
from lloydformer.plans.symmetric import NearestCosts
from lloydformer.plans.trimmed import Within


def _moments(points: PointsOnGpu, fold: Moments) -> Any:
    return points.moments


def _nearest(points: PointsOnGpu, fold: Nearest) -> Any:
    known = points.labelled_by(fold.centers) if points.exact else None
    if known is None:
        return None
    work, units = known[0], points.points
    sums = work.sums.double() / units.sum_unit
    masses = work.masses.double() / units.mass_unit
    changed = work.changed[0] + (0 if points.changed is None else points.changed)
    points.changed = None
    return sums, masses, changed


def _measure(points: PointsOnGpu, fold: Measure) -> Any:
    adds = isinstance(fold, Cosines)
    known = points.labelled_by(fold.centers) if not adds or points.exact else None
    if known is None:
        return None
    work, steps = known
    distances = points.state.column("distances")
    total, masses = steps.measure(distances), work.masses.double() / points.points.mass_unit
    if adds:  # the sum of w x c
        masses = (work.sums.double() / points.points.sum_unit * work.seen.double()).sum(dim=1)
    return total, masses


def _farthest(points: PointsOnGpu, fold: Farthest) -> FarthestPoints | None:
    known = points.steps(len(fold.centers)) if points.labelled else None
    if known is None or not torch.equal(known[0].seen, fold.centers):
        return None
    away = torch.empty(points.layout.n_rows, dtype=fold.centers.dtype, device=fold.centers.device)
    known[1].measure(away)
    weights = points.blocks.sample_weight
    if weights is None:
        weights = torch.ones_like(away, dtype=torch.float64)
    away = away.double().masked_fill(weights <= 0, -1.0)
    least = away.topk(min(fold.m, len(away))).values[-1]
    rows = (away >= least).nonzero()[:, 0]
    rows = rows[away[rows].sort(descending=True, stable=True).indices[: fold.m]]
    taken, labels = points.blocks.take(rows).double(), known[0].assigned[rows].long()
    return FarthestPoints(away[rows], rows, labels, taken, weights[rows])


FOLDS: dict[type, Callable[[PointsOnGpu, Any], Any | None]] = {
    Moments: _moments, Nearest: _nearest, Measure: _measure, Cosines: _measure,
    Farthest: _farthest, Shares: shares, Histogram: histogram, Within: within, Best: best,
    Above: above, Weighted: weighted, Errors: errors, Drawn: drawn, Halves: halves,
    TwoNearest: removable, Parted: parted, Draw: draw, NearestCosts: nearest_costs,
    Oversample: oversample,
}  # fmt: skip
"""Kernels by the fold that they run."""
