r"""Fits and predictions of estimators as ONNX graphs.

A fit is one `Loop` with the stop rule of the estimator: no Python runs. Inputs are the points and
the initial centers, of any number of points, features and clusters. Everything is computed in
float64. Squared distances are compared by $\lVert c \rVert^2 - 2 x^\top c$ around an origin near
the points, which is rounded so that whole numbers stay whole, and ties stay ties.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from lloydformer.data.array_api import to_tensor
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.circuit import CircuitClusterer
from lloydformer.estimators.kmeans import KMeans
from lloydformer.estimators.medoids import KMedoids
from lloydformer.estimators.robust import RobustKMeans
from lloydformer.estimators.soft import SoftKMeans
from lloydformer.estimators.spherical import SphericalKMeans
from lloydformer.estimators.trimmed import TrimmedKMeans
from lloydformer.export.onnx_graph import Graph
from lloydformer.numerics.checks import FLOATS, require
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.soft import SoftPlan
from lloydformer.plans.trimmed import TrimmedPlan

# Estimators whose fit is one loop over their plan, without draws.
_LOOPS = (KMeans, SphericalKMeans, SoftKMeans, TrimmedKMeans, RobustKMeans, CircuitClusterer)


class AssignedRows(NamedTuple):
    """Values of one assignment, by their names in the graph.

    labels: (n,). own: 1 in the cluster of a point, (n, k). distances: squared, to the center, (n,).
    """

    labels: str
    own: str
    distances: str


class Moved(NamedTuple):
    """The sums (k, d) and masses (k,) of new centers, and a code of each point (n,).

    A fit that stops on labels has settled if no code changed.
    """

    sums: str
    masses: str
    codes: str


Update = Callable[[Graph, str, str, AssignedRows], Moved]


def fit_onnx(
    estimator: Clusterer, path: str | os.PathLike[str], dtype: torch.dtype = torch.float64
) -> None:
    """Write a whole fit as one ONNX graph: iterations, stop rule and empty clusters.

    Inputs are ``points`` (n, d) and ``centers`` (k, d), the initial centers; outputs are
    ``new_centers`` (k, d), ``labels`` (n,), ``inertia`` and ``n_iter``, the attributes of the
    estimator after a fit with ``init=centers``. n, d and k are free. Inputs are not checked.

    Parameters
    ----------
    estimator : Clusterer
        A `KMeans`, `SphericalKMeans`, `SoftKMeans`, `TrimmedKMeans` or `RobustKMeans`, fitted or
        not, or a `CircuitClusterer` whose recipe lowers to one of their plans. Its parameters
        `max_iter`, `tol` and `empty` are those of the graph.
    path : str or PathLike
        The file; its name ends in ``.onnx``.
    dtype : torch.dtype, default=torch.float64
        Precision of inputs and outputs; computations are in float64.

    Raises
    ------
    ValueError
        If the estimator draws random numbers, or has an inverse temperature that is not known
        before the fit, or the package onnx is missing.

    See Also
    --------
    predict_onnx : The labels of new points by fitted centers.
    lloydformer.Circuit.export : A circuit of a fixed number of layers.

    Examples
    --------
    >>> import tempfile, lloydformer as lf
    >>> from importlib.util import find_spec
    >>> if find_spec("onnx"):
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         lf.export.fit_onnx(lf.KMeans(max_iter=100), f"{folder}/kmeans.onnx")
    """
    _check_target(path, dtype)
    plan, number = _plan_of(estimator), np.dtype(str(dtype).removeprefix("torch."))
    fit = _Fit(plan, int(estimator.max_iter), float(estimator.tol), _emptied(estimator, plan))
    graph = Graph()
    inputs = [graph.value("points", number, "n", "d"), graph.value("centers", number, "k", "d")]
    found = fit.build(graph, graph.to("points", np.float64), graph.to("centers", np.float64))
    graph.rename(graph.to(found["new_centers"], number), "new_centers")
    for name in ("labels", "inertia", "n_iter"):
        graph.rename(found[name], name)
    outputs = [
        graph.value("new_centers", number, "k", "d"),
        graph.value("labels", np.int64, "n"),
        graph.value("inertia", np.float64),
        graph.value("n_iter", np.int64),
    ]
    graph.write(path, inputs, outputs, f"{type(estimator).__name__}.fit of lloydformer")


def predict_onnx(
    estimator: Any, path: str | os.PathLike[str], dtype: torch.dtype = torch.float64
) -> None:
    """Write `predict` of a fitted estimator as an ONNX graph: ``points`` (n, d) to ``labels`` (n,).

    Parameters
    ----------
    estimator : Clusterer
        Any fitted estimator of this package that compares squared Euclidean distances or
        directions.
    path : str or PathLike
        The file; its name ends in ``.onnx``.
    dtype : torch.dtype, default=torch.float64
        Precision of the points; computations are in float64.

    Raises
    ------
    ValueError
        If the estimator compares another distance, or scales its columns.

    See Also
    --------
    fit_onnx : A whole fit.

    Examples
    --------
    >>> import tempfile, lloydformer as lf
    >>> from importlib.util import find_spec
    >>> model = lf.KMeans(2, init=[[0.0], [9.0]]).fit([[0.0], [1.0], [8.0], [9.0]])
    >>> if find_spec("onnx"):
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         lf.export.predict_onnx(model, f"{folder}/kmeans.onnx")
    """
    _check_target(path, dtype)
    if not isinstance(estimator, Clusterer):
        raise ValueError(
            f"estimator: found {type(estimator).__name__}, which does not label by the nearest "
            "center; export KMeans or another estimator that has cluster_centers_"
        )
    if not hasattr(estimator, "cluster_centers_"):
        raise ValueError(f"estimator: found {estimator!r}, which is not fitted; call fit first")
    if estimator.scaling is not None:
        raise ValueError(
            "estimator: it was fitted on columns that lf.data.open_dataset scaled, and a graph has "
            "no such scaling; fit it on an array, for example with lf.Scaler in front"
        )
    metric = getattr(estimator, "metric", "sqeuclidean")
    if isinstance(estimator, KMedoids) and metric not in ("sqeuclidean", "euclidean", "cosine"):
        raise ValueError(
            f"estimator: found metric={metric!r}; only Euclidean distances and cosines are "
            "products of points and centers, which the graph computes"
        )
    number = np.dtype(str(dtype).removeprefix("torch."))
    centers = to_tensor(estimator.cluster_centers_).double().cpu().numpy()
    graph = Graph()
    rows = graph.to("points", np.float64)
    if estimator.compares_directions:
        rows = _directions(graph, rows)
        centers = centers / np.linalg.norm(centers, axis=1, keepdims=True)
    else:
        # an origin near the centers: far from 0, products would lose the digits that decide
        origin = np.rint(centers.mean(axis=0))
        rows, centers = graph("Sub", rows, graph.constant(origin, np.float64)), centers - origin
    graph.rename(_nearest(graph, rows, graph.constant(centers, np.float64)), "labels")
    inputs = [graph.value("points", number, "n", centers.shape[1])]
    outputs = [graph.value("labels", np.int64, "n")]
    graph.write(path, inputs, outputs, f"{type(estimator).__name__}.predict of lloydformer")


def _check_target(path: str | os.PathLike[str], dtype: torch.dtype) -> None:
    require(dtype in FLOATS, "dtype", dtype, "pass torch.float32 or torch.float64")
    ends = os.fspath(path).endswith(".onnx")
    require(ends, "path", os.fspath(path), "use a name that ends in .onnx")


def _plan_of(estimator: Clusterer) -> Plan:
    """Return the plan that the graph follows; raise ValueError if it is not one loop."""
    kind = type(estimator).__name__
    if not isinstance(estimator, _LOOPS) or getattr(estimator, "batch_size", None) is not None:
        raise ValueError(
            f"estimator: found {kind}, whose fit draws random numbers or searches; export its "
            "predictions with predict_onnx, or the fit of KMeans, SphericalKMeans, SoftKMeans, "
            "TrimmedKMeans or RobustKMeans"
        )
    if isinstance(estimator, CircuitClusterer):
        plan, reason = estimator._lowering()
        if reason is not None:
            raise ValueError(f"estimator: {reason}; export its circuit with Circuit.export")
    else:
        plan = estimator._plan()
    gamma = getattr(estimator, "inverse_temperature", 1.0)
    if isinstance(gamma, str) and not hasattr(estimator, "inverse_temperature_"):
        raise ValueError(
            'estimator: found inverse_temperature="scale", which is measured in the fit; pass a '
            "number, or fit the estimator first"
        )
    if not isinstance(plan, MeansPlan | SoftPlan | TrimmedPlan | RobustPlan):
        raise ValueError(
            f"estimator: found the plan {type(plan).__name__}, which draws or searches; export its "
            "circuit with Circuit.export"
        )
    return plan


def _emptied(estimator: Clusterer, plan: Plan) -> str:
    """Return "move", "copy" or "keep": how the graph fills an empty cluster."""
    empty = getattr(estimator, "empty", "keep")
    if empty == "error":
        raise ValueError(
            'estimator: found empty="error"; a graph cannot raise, pass "farthest" or "keep"'
        )
    return "keep" if empty == "keep" else plan.empties


@dataclass(frozen=True)
class _Fit:
    """A plan and the rules of its loop, as nodes of a graph."""

    plan: Plan
    max_iter: int
    tol: float
    empties: str

    def build(self, g: Graph, points: str, centers: str) -> dict[str, str]:
        """Add the fit of points (n, d) from centers (k, d), both in float64."""
        if self.plan.directions:
            rows, centers, origin = _directions(g, points), _directions(g, centers), None
        else:
            origin = _origin(g, points)
            rows, centers = g("Sub", points, origin), g("Sub", centers, origin)
        tolerance = g("Mul", g.real(self.tol), _mean_variance(g, rows))
        codes = g("Expand", g.integer(-1), g("Unsqueeze", g.size(rows, 0), g.integers(0)))
        loop = self._loop(g, rows, tolerance)
        yes = g.constant(True, np.bool_)
        moved, _, n_iter = g.several(
            3, "Loop", g.integer(self.max_iter), yes, centers, codes, g.integer(0), body=loop
        )
        found = _assign(g, rows, moved)
        labels, counted = found.labels, found.distances
        if isinstance(self.plan, TrimmedPlan):
            kept = self._kept(g, found)
            labels = g("Where", kept, labels, g.integer(-1))
            counted = g("Where", kept, counted, g.real(0.0))
        inertia = g("ReduceSum", counted, keepdims=0)
        if self.plan.directions:
            inertia = g("Mul", inertia, g.real(0.5))
        placed = moved if origin is None else g("Add", moved, origin)
        return {"new_centers": placed, "labels": labels, "inertia": inertia, "n_iter": n_iter}

    def _loop(self, outer: Graph, rows: str, tolerance: str) -> Any:
        """Return the body: one iteration, and whether another one follows."""
        g = outer.body()
        helper = g.onnx.helper
        found = _assign(g, rows, "held")
        update: dict[type[Plan], Update] = {
            MeansPlan: self._means,
            SoftPlan: self._soft,
            TrimmedPlan: self._trimmed,
            RobustPlan: self._robust,
        }
        moved = update[type(self.plan)](g, rows, "held", found)
        if self.empties != "keep":
            moved = self._fill(g, rows, found, moved)
        new = self._means_or_held(g, moved)
        shift = g("ReduceSumSquare", g("Sub", new, "held"), keepdims=0)
        settled = g("LessOrEqual", shift, tolerance)
        if self.plan.stops_on == "labels":
            # a minimum, not a sum: an n of 0 changed codes is true for all
            same = g.to(g("Equal", moved.codes, "before"), np.int64)
            unchanged = g.to(g("ReduceMin", same, keepdims=0), np.bool_)
            settled = g("Or", settled, unchanged)
        g.rename(g("Not", settled), "again")
        g.rename(new, "new")
        g.rename(moved.codes, "codes")
        g.rename(g("Add", "done", g.integer(1)), "count")
        inputs = [
            g.value("number", np.int64),
            g.value("goes_on", np.bool_),
            g.value("held", np.float64, "k", "d"),
            g.value("before", np.int64, "n"),
            g.value("done", np.int64),
        ]
        outputs = [
            g.value("again", np.bool_),
            g.value("new", np.float64, "k", "d"),
            g.value("codes", np.int64, "n"),
            g.value("count", np.int64),
        ]
        return helper.make_graph(g.nodes, "iteration", inputs, outputs)

    def _means_or_held(self, g: Graph, moved: Moved) -> str:
        """Return the new centers; a cluster without mass keeps its center."""
        masses = g("Unsqueeze", moved.masses, g.integers(1))
        if self.plan.directions:
            masses = _lengths(g, moved.sums)
        there = g("Greater", masses, g.real(0.0))
        # the division by 0 is computed and discarded
        return g("Where", there, g("Div", moved.sums, masses), "held")

    def _means(self, g: Graph, rows: str, centers: str, found: AssignedRows) -> Moved:
        masses = g("ReduceSum", found.own, g.integers(0), keepdims=0)
        return Moved(_sums(g, found.own, rows), masses, found.labels)

    def _soft(self, g: Graph, rows: str, centers: str, found: AssignedRows) -> Moved:
        """Divide by the largest share of each cluster, so that no cluster becomes 0/0."""
        assert isinstance(self.plan, SoftPlan)
        gamma = g.real(-self.plan.inverse_temperature)
        logs = g("LogSoftmax", g("Mul", gamma, _scores(g, rows, centers)), axis=1)
        level = g("ReduceMax", logs, g.integers(0), keepdims=1)
        shares = g("Exp", g("Sub", logs, level))
        masses = g("ReduceSum", shares, g.integers(0), keepdims=0)
        return Moved(_sums(g, shares, rows), masses, found.labels)

    def _trimmed(self, g: Graph, rows: str, centers: str, found: AssignedRows) -> Moved:
        kept = self._kept(g, found)
        weights = g("Mul", found.own, g("Unsqueeze", g.to(kept, np.float64), g.integers(1)))
        masses = g("ReduceSum", weights, g.integers(0), keepdims=0)
        # a point changed if its label did, or if it was trimmed and is kept, or the reverse
        codes = g("Add", g("Mul", found.labels, g.integer(2)), g.to(kept, np.int64))
        return Moved(_sums(g, weights, rows), masses, codes)

    def _kept(self, g: Graph, found: AssignedRows) -> str:
        """Return which points are within the radius of their cluster."""
        assert isinstance(self.plan, TrimmedPlan)
        # as `plans.trimmed.target_masses`: rounding must not add a point
        counts = g("ReduceSum", found.own, g.integers(0), keepdims=1)
        target = g("Ceil", g("Mul", counts, g.real(self.plan.keep * (1 - 1e-12))))
        return _within_rank(g, found, target)

    def _robust(self, g: Graph, rows: str, centers: str, found: AssignedRows) -> Moved:
        """Weigh the points of each cluster by soft-max or sparsemax of their scores."""
        plan = self.plan
        assert isinstance(plan, RobustPlan)
        scores = g("Mul", g.real(-plan.inverse_temperature), found.distances)
        column = g("Unsqueeze", scores, g.integers(1))
        is_own = g.to(found.own, np.bool_)
        lowest = g.real(np.finfo(np.float64).min)
        masked = g("Where", is_own, column, lowest)  # (n, k)
        # relative to the best score of the cluster, where the weights are
        z = g("Sub", masked, g("ReduceMax", masked, g.integers(0), keepdims=1))
        if plan.activation == "softmax":
            weights = g("Mul", found.own, g("Exp", z))
            if plan.m is not None:
                counts = g("ReduceSum", found.own, g.integers(0), keepdims=1)
                near = _within_rank(g, found, g("Min", counts, g.real(float(plan.m))))
                near = g("Unsqueeze", g.to(near, np.float64), g.integers(1))
                weights = g("Mul", weights, near)
        else:
            n = g("Unsqueeze", g.size(rows, 0), g.integers(0))
            ordered, _ = g.several(2, "TopK", z, n, axis=0)
            ranks = g("Range", g.integer(1), g("Add", g.size(rows, 0), g.integer(1)), g.integer(1))
            ranks = g("Unsqueeze", g.to(ranks, np.float64), g.integers(1))  # (n, 1)
            # points of other clusters have no weight: their scores are cut to be finite in sums
            finite = g("Max", ordered, g.real(-4.0))
            sums = g("CumSum", finite, g.integer(0))
            thresholds = g("Div", g("Sub", sums, g.real(1.0)), ranks)
            above = g.to(g("Greater", finite, thresholds), np.int64)
            # a cluster without points has no score above its threshold
            last = g("Sub", g("ReduceSum", above, g.integers(0), keepdims=1), g.integer(1))
            tau = g("GatherElements", thresholds, g("Max", last, g.integer(0)), axis=0)
            weights = g("Mul", found.own, g("Max", g("Sub", z, tau), g.real(0.0)))
        masses = g("ReduceSum", weights, g.integers(0), keepdims=0)
        return Moved(_sums(g, weights, rows), masses, found.labels)

    def _fill(self, g: Graph, rows: str, found: AssignedRows, moved: Moved) -> Moved:
        """Give each empty cluster the farthest point that is left: `rules.fill_empty`."""
        zero, one = g.real(0.0), g.integer(1)
        k = g.size(moved.masses, 0)
        lost = g("Equal", moved.masses, zero)  # (k,)
        rank = g("Sub", g("CumSum", g.to(lost, np.int64), g.integer(0)), one)
        count = g("ReduceSum", g.to(lost, np.int64), keepdims=1)  # (1,)
        rank = g("Max", rank, g.integer(0))
        # the lower row comes first among equal distances
        far, places = g.several(2, "TopK", found.distances, g("Unsqueeze", k, g.integers(0)))
        order = g("Range", g.integer(0), k, one)
        # a point at distance 0 is a center already
        used = g("And", g("Greater", far, zero), g("Less", order, count))
        filled = g("And", lost, g("Gather", used, rank))
        taken = g("Gather", rows, places)  # (k, d), by distance
        sums, masses = moved.sums, moved.masses
        if self.empties == "move":
            weights = g.to(used, np.float64)
            leaves = g(
                "Mul", g("Gather", found.own, places), g("Unsqueeze", weights, g.integers(1))
            )
            sums = g("Sub", sums, _sums(g, leaves, taken))
            masses = g("Sub", masses, g("ReduceSum", leaves, g.integers(0), keepdims=0))
        column = g("Unsqueeze", filled, g.integers(1))
        sums = g("Where", column, g("Gather", taken, rank), sums)
        return Moved(sums, g("Where", filled, g.real(1.0), masses), moved.codes)


def _lengths(g: Graph, rows: str) -> str:
    """Return the length of each row, (m, 1)."""
    return g("ReduceL2", rows, g.integers(1), keepdims=1)


def _directions(g: Graph, rows: str) -> str:
    return g("Div", rows, _lengths(g, rows))


def _origin(g: Graph, points: str) -> str:
    """Return the mean (1, d), rounded to the largest power of two in the spread of the column."""
    mean = g("ReduceMean", points, g.integers(0), keepdims=1)
    away = g("ReduceMax", g("Abs", g("Sub", points, mean)), g.integers(0), keepdims=1)
    bits = g("Floor", g("Div", g("Log", away), g.real(np.log(2.0))))
    quantum = g("Pow", g.real(2.0), bits)
    rounded = g("Mul", g("Round", g("Div", mean, quantum)), quantum)
    # a constant column is its own origin
    return g("Where", g("Greater", away, g.real(0.0)), rounded, mean)


def _mean_variance(g: Graph, rows: str) -> str:
    """Return the mean variance of the columns, of which the tolerance is a multiple."""
    mean = g("ReduceMean", rows, g.integers(0), keepdims=1)
    away = g("Sub", rows, mean)
    return g("ReduceMean", g("Mul", away, away), keepdims=0)


def _scores(g: Graph, rows: str, centers: str) -> str:
    """Return |c|^2 - 2 x c (n, k): the squared distances, less |x|^2 of each row."""
    squares = g("ReduceSumSquare", centers, g.integers(1), keepdims=0)
    products = g("MatMul", rows, g("Transpose", centers))
    return g("Sub", squares, g("Add", products, products))


def _nearest(g: Graph, rows: str, centers: str) -> str:
    return g("ArgMin", _scores(g, rows, centers), axis=1, keepdims=0)


def _assign(g: Graph, rows: str, centers: str) -> AssignedRows:
    labels = _nearest(g, rows, centers)
    clusters = g("Range", g.integer(0), g.size(centers, 0), g.integer(1))
    own = g("Equal", g("Unsqueeze", labels, g.integers(1)), clusters)
    # by differences: they decide what is trimmed, and which points are the farthest
    away = g("Sub", rows, g("Gather", centers, labels))
    distances = g("ReduceSumSquare", away, g.integers(1), keepdims=0)
    return AssignedRows(labels, g.to(own, np.float64), distances)


def _sums(g: Graph, weights: str, rows: str) -> str:
    """Return the weighted sums of the rows of each cluster, (k, d)."""
    return g("MatMul", g("Transpose", weights), rows)


def _within_rank(g: Graph, found: AssignedRows, ranks: str) -> str:
    """Return which points are at most as far as the point of their cluster with its rank (1, k)."""
    n = g.size(found.distances, 0)
    column = g("Unsqueeze", found.distances, g.integers(1))
    infinite = g.real(np.inf)
    masked = g("Where", g.to(found.own, np.bool_), column, infinite)  # (n, k)
    length = g("Unsqueeze", n, g.integers(0))
    ordered, _ = g.several(2, "TopK", masked, length, axis=0, largest=0)
    place = g("Max", g("Sub", g.to(ranks, np.int64), g.integer(1)), g.integer(0))
    radii = g("Squeeze", g("GatherElements", ordered, place, axis=0), g.integers(0))  # (k,)
    return g("LessOrEqual", found.distances, g("Gather", radii, found.labels))
