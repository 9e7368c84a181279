"""The same numbers for the same clusters: number clusters after earlier centers."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.engines.parts import LabelsOnParts
from lloydformer.solving.solve import Result


def earlier_centers(match_to: Any, layout: Layout) -> Tensor:
    """The centers of `match_to`, in the coordinates of the rows; wrong ones raise `ValueError`."""
    if sparse.issparse(match_to):
        match_to = match_to.toarray()
    elif isinstance(match_to, Tensor):
        match_to = match_to.detach().cpu()
    earlier = torch.as_tensor(np.ascontiguousarray(match_to, dtype=np.float64))
    if earlier.ndim != 2 or earlier.shape[1] != layout.n_features or len(earlier) == 0:
        raise ValueError(
            f"match_to: found the shape {tuple(earlier.shape)}; pass earlier centers, "
            f"one per row, with {layout.n_features} features"
        )
    if not bool(earlier.isfinite().all()):
        raise ValueError("match_to: found NaN or infinity; pass finite centers")
    return layout.place(earlier.to(layout.device)).cpu()


def order_after(centers: Tensor, earlier: Tensor) -> Tensor:
    """For each number, the center (k, d) that gets it: the nearest ones to the earlier, in pairs.

    Of all ways to pair centers with earlier ones, that with the smallest sum of squared distances.
    Centers without a partner take the numbers that are left, in their order.
    """
    from scipy.optimize import linear_sum_assignment  # takes longer to import than a small fit

    found = centers.detach().double().cpu()
    away = (found[:, None] - earlier.double()).square().sum(dim=2)  # (k, earlier)
    order = np.full(len(found), -1)
    for center, number in zip(*linear_sum_assignment(away.numpy()), strict=True):
        if number < len(found):
            order[number] = center
    order[order < 0] = np.setdiff1d(np.arange(len(found)), order)
    return torch.from_numpy(order)


def renumbered(result: Result, order: Tensor) -> Result:
    """The result with cluster order[j] as number j, in everything that is kept per cluster."""
    order = order.to(result.centers.device)
    outcome, numbers = result.outcome, torch.empty_like(order)
    numbers[order] = torch.arange(len(order), device=order.device)
    rows, masses, labels = outcome.rows, outcome.masses, result.labels
    if isinstance(labels, LabelsOnParts):
        labels = labels.renumbered(numbers)
    else:
        labels = numbers.to(labels)[labels.long()]
    return replace(
        result,
        labels=labels,
        outcome=replace(
            outcome,
            centers=outcome.centers[order],
            rows=None if rows is None else rows[order.to(rows.device)],
            masses=None if masses is None else tuple(masses[j] for j in order.tolist()),
        ),
    )
