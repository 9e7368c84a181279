"""`reference_centers`: renumber clusters to match earlier centers."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from lloydformer.data.layout import Layout
from lloydformer.engines.partitioned import DistributedLabels
from lloydformer.numerics.checks import refuse_masked
from lloydformer.solving.driver import Result


def read_reference_centers(reference_centers: Any, layout: Layout) -> Tensor:
    """Return the centers of `reference_centers` in the coordinates of the rows.

    Raises `ValueError` for another shape, and for NaN or infinity.
    """
    refuse_masked("reference_centers", reference_centers)
    if sparse.issparse(reference_centers):
        reference_centers = reference_centers.toarray()
    elif isinstance(reference_centers, Tensor):
        reference_centers = reference_centers.detach().cpu()
    earlier = torch.as_tensor(np.ascontiguousarray(reference_centers, dtype=np.float64))
    if earlier.ndim != 2 or earlier.shape[1] != layout.n_features or len(earlier) == 0:
        raise ValueError(
            f"reference_centers: found the shape {tuple(earlier.shape)}; pass earlier centers, "
            f"one per row, with {layout.n_features} features"
        )
    if not bool(earlier.isfinite().all()):
        raise ValueError("reference_centers: found NaN or infinity; pass finite centers")
    # Scaled as the rows are, so that columns count as in the fit; on the CPU, for scipy.
    return layout.to_row_units(earlier.to(layout.device)).cpu()


def match_clusters(centers: Tensor, earlier: Tensor) -> Tensor:
    """Return for each new number the center that gets it, (k,).

    Centers (k, d) are paired with earlier ones so that the sum of squared distances is smallest.
    Centers without a partner get the remaining numbers, in their order.
    """
    from scipy.optimize import linear_sum_assignment  # takes longer to import than a small fit

    new, k = centers.detach().double().cpu(), len(centers)
    squares = (new[:, None] - earlier.double()).square().sum(dim=2)  # (k, earlier)
    order = np.full(k, -1)
    for center, number in zip(*linear_sum_assignment(squares.numpy()), strict=True):
        if number < k:  # there may be more earlier centers than clusters
            order[number] = center
    # If there are fewer earlier centers than clusters, some numbers are left.
    order[order < 0] = np.setdiff1d(np.arange(k), order)
    return torch.from_numpy(order)


def renumber(result: Result, order: Tensor) -> Result:
    """Return the result with cluster order[j] as number j: centers, labels, rows and masses."""
    order = order.to(result.centers.device)
    outcome, numbers = result.outcome, torch.empty_like(order)
    numbers[order] = torch.arange(len(order), device=order.device)
    rows, masses, labels = outcome.rows, outcome.masses, result.labels
    certificate = outcome.certificate
    if certificate is not None:
        certificate = replace(
            certificate,
            prices=tuple(certificate.prices[j] for j in order.tolist()),
            sizes=tuple(certificate.sizes[j] for j in order.tolist()),
        )
    if isinstance(labels, DistributedLabels):
        labels = labels.renumber(numbers)
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
            certificate=certificate,
        ),
    )
