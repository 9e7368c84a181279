"""Ours and the others: each fits the same problem in its own way."""

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
from lloydformer.jobs.bench.problem import Contender, Fitted, Problem


@dataclass(frozen=True)
class Estimator:
    """An estimator with scikit-learn's interface."""

    name: str
    package: str
    kind: Callable[..., Any]
    settings: dict[str, Any] = field(default_factory=dict)

    def fit(self, problem: Problem, seed: int) -> Fitted:
        model = self.model(problem, seed).fit(problem.points)
        return Fitted(model.cluster_centers_, int(model.n_iter_))

    def model(self, problem: Problem, seed: int) -> Any:
        init = "k-means++" if problem.start is None else problem.start
        return self.kind(n_clusters=problem.n_clusters, init=init, n_init=1, tol=problem.tol,
                         max_iter=problem.max_iter, random_state=seed, **self.settings)  # fmt: skip


class OneDal(Estimator):
    """scikit-learn-intelex, which must not hand the work to scikit-learn unseen."""

    def fit(self, problem: Problem, seed: int) -> Fitted:
        model = self.model(problem, seed).fit(problem.points)
        if not hasattr(model, "_onedal_estimator"):
            raise ValueError("scikit-learn-intelex: found a fit by scikit-learn, not by oneDAL; "
                             "leave it out with --without scikit-learn-intelex")  # fmt: skip
        return Fitted(model.cluster_centers_, int(model.n_iter_))


@dataclass(frozen=True)
class Faiss:
    """faiss.Kmeans on all points. It knows no `tol`: it ends early only where nothing changes."""

    name: str = "faiss-cpu"
    package: str = "faiss-cpu"

    def fit(self, problem: Problem, seed: int) -> Fitted:
        n, d = problem.points.shape
        model = import_module("faiss").Kmeans(
            d, problem.n_clusters, niter=problem.max_iter, nredo=1, seed=seed, verbose=False,
            spherical=False, min_points_per_centroid=1, max_points_per_centroid=n,
        )  # fmt: skip
        model.train(problem.points, init_centroids=problem.start)
        return Fitted(np.asarray(model.centroids), len(model.obj))


OURS = Estimator("lloydformer", "lloydformer", lf.KMeans)
CHUNKED = Estimator("lloydformer, chunked", "lloydformer", lf.KMeans, {"engine": "chunked"})
LLOYD = Estimator("scikit-learn", "scikit-learn", sklearn.cluster.KMeans)
ELKAN = Estimator(
    "scikit-learn, elkan", "scikit-learn", sklearn.cluster.KMeans, {"algorithm": "elkan"}
)
ALGORITHMS = (
    Estimator("KMeans", "lloydformer", lf.KMeans),
    Estimator("SphericalKMeans", "lloydformer", lf.SphericalKMeans),
    Estimator("SoftKMeans", "lloydformer", lf.SoftKMeans),
    Estimator("TrimmedKMeans", "lloydformer", lf.TrimmedKMeans),
    Estimator("RobustKMeans", "lloydformer", lf.RobustKMeans),
)


def _intelex() -> Contender:
    kind = import_module("sklearnex.cluster").KMeans
    return OneDal("scikit-learn-intelex", "scikit-learn-intelex", kind)


OPTIONAL: dict[str, tuple[str, Callable[[], Contender]]] = {
    "scikit-learn-intelex": ("sklearnex", _intelex),
    "faiss-cpu": ("faiss", Faiss),
}
"""Peers that may be missing: the module that shows it, and how the contender is made."""


def missing() -> list[str]:
    """The packages of peers that are not installed."""
    return [package for package, (module, _) in OPTIONAL.items() if find_spec(module) is None]


def optional(package: str) -> list[Contender]:
    """The peer of this package; none where it is not installed."""
    return [] if package in missing() else [OPTIONAL[package][1]()]


@contextmanager
def limited(n_threads: int) -> Iterator[None]:
    """So many threads for each: OpenMP and BLAS, torch, faiss and oneDAL (which has TBB)."""
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
