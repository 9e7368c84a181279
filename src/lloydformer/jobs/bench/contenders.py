"""The contenders: estimators of this package and of others, with one interface."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any

import numpy as np
import sklearn.cluster
import torch
from threadpoolctl import threadpool_limits

import lloydformer as lf
from lloydformer.estimators import ALGORITHMS, RegisteredAlgorithm
from lloydformer.jobs.bench.problem import BenchProblem, Contender, Fitted, Work

CALLS = ("predict", "transform", "score")
"""Work of a fitted model."""


@dataclass(frozen=True)
class EstimatorContender:
    """A contender that is an estimator with scikit-learn's interface.

    streaming: the class for "partial_fit" and "minibatch", if it has one.
    """

    name: str
    package: str
    kind: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)
    streaming: Callable[..., Any] | None = None

    def does(self, work: str) -> bool:
        streams = self.streaming is not None
        return work in ("fit", *CALLS) or (streams and work in ("partial_fit", "minibatch"))

    def prepared(self, problem: BenchProblem) -> Work:
        if problem.work == "fit":
            return partial(self.fit, problem)
        if problem.work in CALLS:
            return partial(_called, self._fitted(problem), problem)
        return partial(
            self._batches if problem.work == "partial_fit" else self._in_batches, problem
        )

    def fit(self, problem: BenchProblem, seed: int) -> Fitted:
        """Run one whole fit."""
        model = self.model(problem, seed).fit(problem.points)
        return Fitted(model.cluster_centers_, int(model.n_iter_))

    def model(self, problem: BenchProblem, seed: int) -> Any:
        init = "k-means++" if problem.start is None else problem.start
        return self.kind(n_clusters=problem.n_clusters, init=init, n_init=1, tol=problem.tol,
                         max_iter=problem.max_iter, random_state=seed, **self.settings)  # fmt: skip

    def _fitted(self, problem: BenchProblem) -> Any:
        """A model whose centers are the start: one iteration, on the start itself, twice."""
        assert problem.start is not None
        return self.model(replace(problem, max_iter=1), 0).fit(np.tile(problem.start, (2, 1)))

    def _batches(self, problem: BenchProblem, seed: int) -> Fitted:
        assert self.streaming is not None
        model = self.streaming(problem.n_clusters, init=problem.start, n_init=1, random_state=seed)
        starts = range(0, len(problem.points), problem.batch)
        for start in starts:
            model.partial_fit(problem.points[start : start + problem.batch])
        return Fitted(model.cluster_centers_, len(starts))

    def _in_batches(self, problem: BenchProblem, seed: int) -> Fitted:
        assert self.streaming is not None
        model = self.streaming(
            problem.n_clusters, n_init=1, random_state=seed, batch_size=problem.batch,
            max_iter=problem.max_iter, tol=problem.tol,
        ).fit(problem.points)  # fmt: skip
        return Fitted(model.cluster_centers_, int(model.n_iter_))


def _called(model: Any, problem: BenchProblem, seed: int) -> Fitted:
    """One call of a fitted model."""
    found = getattr(model, problem.work)(problem.points)
    return Fitted(model.cluster_centers_, 1, None if problem.work == "score" else found)


class OneDalContender(EstimatorContender):
    """scikit-learn-intelex; raises ValueError if it falls back to scikit-learn."""

    def does(self, work: str) -> bool:
        return work in ("fit", "predict")  # the others are scikit-learn's own

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

    def does(self, work: str) -> bool:
        return work in ("fit", "predict")

    def prepared(self, problem: BenchProblem) -> Work:
        if problem.work == "fit":
            return partial(self._fit, problem)
        index = import_module("faiss").IndexFlatL2(problem.points.shape[1])
        index.add(problem.start)
        return partial(self._predict, index, problem)

    def _fit(self, problem: BenchProblem, seed: int) -> Fitted:
        n, d = problem.points.shape
        model = import_module("faiss").Kmeans(
            d, problem.n_clusters, niter=problem.max_iter, nredo=1, seed=seed, verbose=False,
            spherical=False, min_points_per_centroid=1, max_points_per_centroid=n,
        )  # fmt: skip
        model.train(problem.points, init_centroids=problem.start)
        return Fitted(np.asarray(model.centroids), len(model.obj))

    def _predict(self, index: Any, problem: BenchProblem, seed: int) -> Fitted:
        assert problem.start is not None
        return Fitted(problem.start, 1, index.search(problem.points, 1)[1][:, 0])


OURS = EstimatorContender("lloydformer", "lloydformer", lf.KMeans, streaming=lf.KMeans)
CHUNKED = EstimatorContender(
    "lloydformer, chunked", "lloydformer", lf.KMeans, {"engine": "chunked"}
)
LLOYD = EstimatorContender(
    "scikit-learn", "scikit-learn", sklearn.cluster.KMeans,
    streaming=sklearn.cluster.MiniBatchKMeans,
)  # fmt: skip
ELKAN = EstimatorContender(
    "scikit-learn, elkan", "scikit-learn", sklearn.cluster.KMeans, {"algorithm": "elkan"}
)


def _usual(known: RegisteredAlgorithm) -> dict[str, Any]:
    """The recipe's inverse temperature: to find one from the data is not part of an iteration."""
    usual = signature(known.recipe).parameters.get("inverse_temperature")
    return {} if usual is None else {"inverse_temperature": usual.default}


OUR_ALGORITHMS = tuple(
    EstimatorContender(known.estimator.__name__, "lloydformer", known.estimator, _usual(known))
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
