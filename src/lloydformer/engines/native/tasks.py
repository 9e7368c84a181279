"""Tasks that one kernel call runs: `TASKS`, at the end, lists them.

As in `folds.py`, task, function and kernel have one name: `LloydIterations` is run by
`run_lloyd_iterations`, which calls the kernel "lloyd_iterations". A function returns None to
decline: then the caller solves the problem by a loop over folds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.native.folds import mixture_arguments
from lloydformer.engines.native.open_points import OpenPoints
from lloydformer.plans.constrained import BoundedAssignment, CertifiedLabels
from lloydformer.plans.contract import IterationsResult, Sums
from lloydformer.plans.means import LloydIterations
from lloydformer.plans.medoid_search import MedoidMove
from lloydformer.plans.minibatch import MinibatchSums
from lloydformer.plans.mixture import MixtureRows
from lloydformer.plans.recombining import Mutation, WardMerging
from lloydformer.plans.relocating import (
    RelocatingIterations,
    RelocatingResult,
    Relocation,
    RelocationResult,
)
from lloydformer.plans.seeding import PlusPlusSeeds

# Largest product n d k for which one call runs a whole loop: about 1 ms per iteration. The call
# compares all points with all centers on one thread. Above this size bounds and several threads
# save more time than the calls take, and Ctrl-C and callbacks would wait too long.
_ONE_CALL = 1 << 22
# Most iterations of one call: bounds the memory of its history. Ctrl-C is handled between calls.
_MOST_ITERATIONS = 1024
# Most products of numbers in one call with sparse rows, a few seconds: Ctrl-C waits for its end.
_PRODUCTS = 1 << 32
# Most layers of one call, over all its starts: bounds the memory of its history to 32 MB.
_LAYERS = 1 << 22


def in_one_call(n_rows: int, n_features: int, n_clusters: int) -> bool:
    """Return True if one call runs all iterations of k-means on dense rows of this size."""
    return n_rows * n_features * n_clusters <= _ONE_CALL


def run_lloyd_iterations(points: OpenPoints, task: LloydIterations) -> IterationsResult | None:
    (k, d), at_once = task.centers.shape, _MOST_ITERATIONS
    if isinstance(points.blocks, SparseBlocks):
        # Kernels for sparse rows have no bounds: one call is best for every size.
        products = (points.blocks.matrix.nnz + d) * k + 1
        at_once = max(1, min(_MOST_ITERATIONS, _PRODUCTS // products))
    elif not in_one_call(points.layout.n_rows, d, k):
        return None
    centers = task.centers.clone(memory_format=torch.contiguous_format)
    history = np.zeros(min(task.max_iter, at_once))
    ((count, settled),) = points.run(
        "lloyd_iterations",
        ("labels", "previous"),
        centers=centers,
        fresh=points.fresh,
        tolerance=task.tolerance,
        history=history,
    )
    points.fresh = False
    objectives = [task.objective(change) for change in history[:count].tolist()]
    return IterationsResult(centers, objectives, settled)


def run_plus_plus_seeds(points: OpenPoints, task: PlusPlusSeeds) -> list[torch.Tensor] | None:
    n_seeds, results = task.draws.shape[1] + 1, []
    if not in_one_call(points.layout.n_rows, points.layout.n_features, n_seeds):
        return None
    for first, draws in zip(task.firsts.tolist(), task.draws, strict=True):
        rows = torch.zeros(n_seeds, dtype=torch.int64)
        rows[0] = first
        columns = ("labels", "distances")
        (count,) = points.run("plus_plus_seeds", columns, rows=rows, draws=draws)
        results.append(rows[:count])  # fewer than k if every point with weight is a seed
    return results


def run_relocation(points: OpenPoints, task: Relocation) -> RelocationResult:
    centers, draws = task.centers.clone().contiguous(), task.draws
    ((before, after),) = points.run(
        "relocation",
        centers=centers,
        seed=draws.seed,
        layer=draws.layer,
        moved=task.n_moved,
        draws=draws.n_draws,
    )
    return RelocationResult(centers, before, after)


def run_relocating_iterations(
    points: OpenPoints, task: RelocatingIterations
) -> list[RelocatingResult] | None:
    b, k, d = task.starts.shape
    if not in_one_call(points.layout.n_rows, d, k) or task.max_layers < 1:
        return None
    layers = min(task.max_layers, _LAYERS // b)
    centers = task.starts.clone().contiguous()
    history, masses = np.empty((b, layers)), np.empty((b, k))
    counts, objectives, interrupted = np.zeros(b, dtype=np.int64), np.empty(b), False
    try:
        points.run(
            "relocating_iterations",
            centers=centers,
            seeds=np.array(task.seeds, dtype=np.int64),
            history=history,
            counts=counts,
            masses=masses,
            objectives=objectives,
            layer=task.layer,
            moved=task.n_moved,
            draws=task.n_draws,
            patience=task.patience,
            rest=-1 if task.rest is None else task.rest,
            tolerance=task.tolerance,
        )
    except KeyboardInterrupt:
        # Python raises it when the call has returned: then its results are complete. If some are
        # not, it came before the call.
        interrupted = True
        if not counts.all():
            raise
    more = (task.rest or 0) + 3 + min(task.n_moved, k)  # layers until the next relocation is done
    if not interrupted and layers < task.max_layers and counts.max() + more > layers:
        return None  # ended by the size of the history, not by the stop rule
    return [
        RelocatingResult(
            centers[i],
            tuple(masses[i].tolist()),
            float(objectives[i]),
            history[i, : counts[i]].tolist(),
            interrupted,
        )
        for i in range(b)
    ]


def run_ward_merging(points: OpenPoints, task: WardMerging) -> torch.Tensor:
    # Copies: the kernel merges centers and masses in place.
    centers, masses = task.centers.clone(), task.masses.clone()
    out = {"merged": (task.k, centers.shape[1])}
    _, merged = points.run("ward_merging", out=out, centers=centers, masses=masses)
    return merged


def run_mutation(points: OpenPoints, task: Mutation) -> torch.Tensor:
    centers = task.centers.clone().contiguous()
    points.run("mutation", centers=centers, seed=task.seed, number=task.number)
    return centers


def run_minibatch_sums(points: OpenPoints, task: MinibatchSums) -> tuple[Sums, torch.Tensor]:
    k, d = task.centers.shape
    out = {"sums": (k, d), "counts": k, "objective": 1}
    _, sums, counts, objective = points.run(
        "minibatch_sums", out=out, rows=task.rows, centers=task.centers
    )
    return Sums(sums, counts), objective[0]


# Numbers of the metrics in the kernels' `Metric`; for "cosine" rows are directions, whose squared
# distance is twice the cosine distance.
_METRICS = {"sqeuclidean": 0, "euclidean": 1, "manhattan": 2, "precomputed": 3, "cosine": 0}


def run_medoid_move(
    points: OpenPoints, task: MedoidMove
) -> tuple[float, bool, bool, torch.Tensor] | None:
    if points.layout.n_rows >= 2**31:  # the kernels number rows in int32
        return None
    arguments = dict(task.arguments)
    if "metric" in arguments:
        arguments["metric"] = _METRICS[arguments["metric"]]
    medoids = task.medoids.clone()
    ((loss, fell, done),) = points.run(f"medoid_{task.name}", medoids=medoids, **arguments)
    return loss, fell, done, medoids


def run_mixture_rows(points: OpenPoints, task: MixtureRows) -> torch.Tensor | None:
    arguments = mixture_arguments(task.components)
    if arguments is None:
        return None
    shape = [points.layout.n_rows]
    if task.asked == "shares":
        shape.append(len(task.components.means))
    dtype = torch.int32 if task.asked == "labels" else points.layout.dtype
    found = torch.empty(shape, dtype=dtype)
    arguments[task.asked] = found
    points.run("mixture_rows", **arguments)
    return found


def run_bounded_assignment(points: OpenPoints, task: BoundedAssignment) -> CertifiedLabels | None:
    if points.layout.n_rows >= 2**31:  # the kernel numbers points in int32
        return None
    centers: dict[str, Any] = {"centers": task.centers}
    if task.returned is not None:
        centers = {"returned": task.returned}
    prices = task.prices.clone()
    ((cost, bound),) = points.run(
        "bounded_assignment",
        ("labels",),
        lower=task.lower,
        upper=task.upper,
        prices=prices,
        certify=task.certify,
        **centers,
    )
    return CertifiedLabels(prices, cost, bound)


# Runs a task on the points; returns None to decline.
TaskRunner = Callable[[OpenPoints, Any], Any | None]

TASKS: dict[type, TaskRunner] = {
    LloydIterations: run_lloyd_iterations,
    PlusPlusSeeds: run_plus_plus_seeds,
    Relocation: run_relocation,
    RelocatingIterations: run_relocating_iterations,
    WardMerging: run_ward_merging,
    Mutation: run_mutation,
    MinibatchSums: run_minibatch_sums,
    BoundedAssignment: run_bounded_assignment,
    MedoidMove: run_medoid_move,
    MixtureRows: run_mixture_rows,
}
# The tasks with a kernel for sparse rows too, under the same name.
SPARSE_TASKS: dict[type, TaskRunner] = {LloydIterations: run_lloyd_iterations}
