"""Trimmed k-means."""

from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils._param_validation import Interval

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.estimators.source import Source
from lloydformer.solving.solve import Result


class TrimmedKMeans(Clusterer):
    r"""Trimmed k-means (alg:trim-kmeans): a cluster's farthest points do not count.

    Of a cluster with weight W, the points within the smallest radius that holds `keep` times W
    stay. Trimmed points have the label -1 in `labels_`, and `outliers_` are their rows;
    `inertia_` is over the points kept. `predict` gives every row its nearest center. k-means++
    looks for far points: with far outliers, `init="random"` and several starts are better.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "keep": [Interval(Real, 0, 1, closed="right")],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        keep: float | Any = 0.95,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        empty: str | Any = "farthest",
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.keep = keep
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.empty = empty
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start

    def _recipe(self) -> Recipe:
        return recipes.trimmed(float(self.keep))

    def _keep(self, result: Result, source: Source) -> None:
        super()._keep(result, source)
        outliers = torch.as_tensor(self.labels_) == -1
        self.outliers_ = source.out(outliers.nonzero()[:, 0])


register(
    RegisteredAlgorithm(
        name="trimmed",
        estimator=TrimmedKMeans,
        recipe=recipes.trimmed,
        oracle=algorithms.Trimmed,
        summary="outliers, which it labels -1",
    )
)
