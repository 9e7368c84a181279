"""The contenders: estimators of this package and of others, with one interface."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import sklearn.cluster
import torch
from threadpoolctl import threadpool_limits

import lloydformer as lf
from lloydformer.estimators import ALGORITHMS
from lloydformer.jobs.bench.problem import BenchProblem, Contender, Fitted


@dataclass(frozen=True)
class EstimatorContender:
    """A contender that is an estimator with scikit-learn's interface."""

    name: str
    package: str
    kind: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)

    def fit(self, problem: BenchProblem, seed: int) -> Fitted:
        model = self.model(problem, seed).fit(problem.points)
        return Fitted(model.cluster_centers_, int(model.n_iter_))

    def model(self, problem: BenchProblem, seed: int) -> Any:
        init = "k-means++" if problem.start is None else problem.start
        return self.kind(n_clusters=problem.n_clusters, init=init, n_init=1, tol=problem.tol,
                         max_iter=problem.max_iter, random_state=seed, **self.settings)  # fmt: skip


class OneDalContender(EstimatorContender):
    """scikit-learn-intelex; raises ValueError if it falls back to scikit-learn."""

    def fit(self, problem: BenchProblem, seed: int) -> Fitted:
        model = self.model(problem, seed).fit(problem.points)
        if not hasattr(model, "_onedal_estimator"):
            raise ValueError("scikit-learn-intelex: it used scikit-learn in place of oneDAL; leave "
                             "it out with --without scikit-learn-intelex")  # fmt: skip
        return Fitted(model.cluster_centers_, int(model.n_iter_))


@dataclass(frozen=True)
class FaissContender:
    """faiss.Kmeans on all points. It has no `tol`, and stops early only if nothing changes."""

    name: str = "faiss-cpu"
    package: str = "faiss-cpu"

    def fit(self, problem: BenchProblem, seed: int) -> Fitted:
        n, d = problem.points.shape
        model = import_module("faiss").Kmeans(
            d, problem.n_clusters, niter=problem.max_iter, nredo=1, seed=seed, verbose=False,
            spherical=False, min_points_per_centroid=1, max_points_per_centroid=n,
        )  # fmt: skip
        model.train(problem.points, init_centroids=problem.start)
        return Fitted(np.asarray(model.centroids), len(model.obj))


OURS = EstimatorContender("lloydformer", "lloydformer", lf.KMeans)
CHUNKED = EstimatorContender(
    "lloydformer, chunked", "lloydformer", lf.KMeans, {"engine": "chunked"}
)
LLOYD = EstimatorContender("scikit-learn", "scikit-learn", sklearn.cluster.KMeans)
ELKAN = EstimatorContender(
    "scikit-learn, elkan", "scikit-learn", sklearn.cluster.KMeans, {"algorithm": "elkan"}
)
OUR_ALGORITHMS = tuple(
    EstimatorContender(known.estimator.__name__, "lloydformer", known.estimator)
    for known in sorted(ALGORITHMS.values(), key=lambda known: known.name != "kmeans")
    if "patience" not in known.estimator().get_params()
)
"""Algorithms whose fit is a sequence of equal iterations; k-means is the first.

A parameter `patience` marks the others: they try moves, and keep those that help.
"""


def _intelex() -> Contender:
    kind = import_module("sklearnex.cluster").KMeans
    return OneDalContender("scikit-learn-intelex", "scikit-learn-intelex", kind)


OPTIONAL: dict[str, tuple[str, Callable[[], Contender]]] = {
    "scikit-learn-intelex": ("sklearnex", _intelex),
    "faiss-cpu": ("faiss", FaissContender),
}
"""Optional peers by package: the module to look for, and how to make the contender."""


def missing() -> list[str]:
    """The optional packages that are not installed."""
    return [package for package, (module, _) in OPTIONAL.items() if find_spec(module) is None]


def optional(package: str) -> list[Contender]:
    """The contender of an optional package; empty if it is not installed."""
    return [] if package in missing() else [OPTIONAL[package][1]()]


@contextmanager
def limited(n_threads: int) -> Iterator[None]:
    """Limit OpenMP, BLAS, torch, faiss and oneDAL (which uses TBB) to `n_threads` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    if find_spec("faiss") is not None:
        import_module("faiss").omp_set_num_threads(n_threads)
    if find_spec("daal4py") is not None:
        import_module("daal4py").daalinit(n_threads)
    try:
        with threadpool_limits(n_threads):
            yield
    finally:
        torch.set_num_threads(before)
