"""The rules of the loop: when it stops, how empty clusters are filled, which result is better.

They apply to a batch of problems; a fit is a batch of one. Kernels that run whole loops implement
them a second time for speed, and a property test compares the two.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.assign import FarthestPoints
from lloydformer.plans.contract import Empties, StopsOn, Sums

Numbers = TypeVar("Numbers", np.ndarray, Tensor)


@dataclass(frozen=True)
class Rules:
    """The settings of the loop that a user chooses.

    Attributes
    ----------
    max_iter : int
        Maximum number of iterations.
    tol : float
        Tolerance of the stop rule, relative to the mean variance of the columns.
    empty : {"farthest", "keep", "error"}
        The estimator's parameter `empty`, for clusters without points: fill them by the farthest
        points, in the way of `Plan.empties`; leave their centers where they are; or raise. Plans
        with `empties` "keep" ignore it.
    patience : int or None
        For plans that draw: stop after more than this number of iterations without a better result.
    return_last : bool
        For plans that draw: return the last centers instead of the best ones.
    typical : bool
        A few rows far away must not enlarge the tolerance: the variance counts at most four times
        that of typical rows (`solving/run.py::typical_variance`).
    """

    max_iter: int = 300
    tol: float = 1e-4
    empty: str = "farthest"
    patience: int | None = None
    return_last: bool = False
    typical: bool = False


def is_settled(stops_on: StopsOn, changed: Numbers, shift: Numbers, tolerance: Numbers) -> Numbers:
    """Apply the stop rule: no label changed, or the centers moved by no more than the tolerance.

    Parameters
    ----------
    stops_on : {"labels", "shift", "never"}
        "shift" ignores the labels; "never" ignores both.
    changed : array of shape (b,)
        Number of points with another label than in the iteration before.
    shift : array of shape (b,)
        Sum of the squared shifts of the centers.
    tolerance : array of shape (b,)
        In the same unit.

    Returns
    -------
    array of bool, shape (b,)
    """
    # Unchanged labels give the same means again, so the fit is at a fixed point. Soft shares change
    # while labels do not, so soft plans stop on "shift". Random draws may repeat by chance, so
    # plans that draw stop on neither ("never").
    still = shift <= tolerance
    if stops_on == "never":
        return still & False
    return still | (changed == 0) if stops_on == "labels" else still


def is_better(inertia: Numbers, best: Numbers) -> Numbers:
    """True if a later result replaces an earlier one: its inertia must be lower."""
    # Strictly lower, so that the first of equal results is kept, whatever the number of restarts.
    return inertia < best


def fill_empty(update: Sums, far: FarthestPoints, empties: Empties) -> Sums:
    """Give each empty cluster the farthest point that is left, by (distance, row).

    Parameters
    ----------
    update : Sums
        Sums (b, k, d) and masses (b, k); a cluster without mass is empty.
    far : FarthestPoints
        At least as many points as a problem has empty clusters, or all it has.
    empties : {"move", "copy"}
        With "move", the point leaves the sums of its own cluster.

    Returns
    -------
    Sums
        A cluster for which no point is left (all points are centers themselves) stays empty.
    """
    sums, masses = update.sums.clone(), update.masses.clone()
    lost = masses == 0  # (b, k)
    rank = (lost.cumsum(dim=1) - 1).clamp(min=0, max=far.rows.shape[1] - 1)
    count = lost.sum(dim=1, keepdim=True)
    # A point at distance 0 is a center already; a second one there would stay empty.
    used = (far.distances > 0) & (torch.arange(far.rows.shape[1], device=count.device) < count)
    filled = lost & used.gather(1, rank) & (lost.cumsum(dim=1) <= far.rows.shape[1])
    weighted = far.points * far.weights.unsqueeze(-1)  # (b, m, d)
    if empties == "move":
        for problem, place in used.nonzero().tolist():  # few: one for each empty cluster
            own = far.labels[problem, place]
            sums[problem, own] -= weighted[problem, place]
            masses[problem, own] -= far.weights[problem, place]
    taken = weighted.gather(1, rank.unsqueeze(-1).expand_as(sums))
    sums = torch.where(filled.unsqueeze(-1), taken, sums)
    return Sums(sums, torch.where(filled, far.weights.gather(1, rank), masses))


def same_labelling(
    one: tuple[Tensor, Tensor | None], other: tuple[Tensor, Tensor | None], n_clusters: int
) -> bool:
    """True if two labellings are equal up to the numbers of the clusters.

    Each is labels (n,) and a mask (n,) of trimmed points, or None.
    """
    return _follows(one, other, n_clusters) and _follows(other, one, n_clusters)


# Chunk size of the comparison: its temporary arrays take a few MB for any number of rows.
_PART = 1 << 18


def _follows(
    first: tuple[Tensor, Tensor | None], second: tuple[Tensor, Tensor | None], n_clusters: int
) -> bool:
    """True if the second label of a point is a function of its first one."""
    # The last pair of each first label is written to a table; then every pair must be that one.
    numbers = torch.full((2 * n_clusters,), -1, device=first[0].device)
    parts = range(0, len(first[0]), _PART)
    for start in parts:
        numbers[_codes(first, start, n_clusters)] = _codes(second, start, n_clusters)
    return all(
        torch.equal(numbers[_codes(first, start, n_clusters)], _codes(second, start, n_clusters))
        for start in parts
    )


def _codes(labelling: tuple[Tensor, Tensor | None], start: int, n_clusters: int) -> Tensor:
    """Return one number for label and mask of some points."""
    labels, trimmed = labelling
    codes = labels[start : start + _PART].long()
    if trimmed is not None:
        codes = codes + n_clusters * trimmed[start : start + _PART]
    return codes
