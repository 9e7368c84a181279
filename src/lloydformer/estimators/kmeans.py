"""K-means: Lloyd's algorithm."""

import warnings
from typing import Any, ClassVar

from sklearn.utils._param_validation import StrOptions

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.estimators.streaming import Streaming


class KMeans(Streaming):
    r"""K-means clustering, a drop-in for `sklearn.cluster.KMeans`.

    Minimises $\sum_i w_i \min_j \lVert x_i - c_j \rVert^2$ (eq:kmeans-dc) by the recipe
    `lloyd()`. Parameters, attributes and warnings mean what they mean in scikit-learn.
    `algorithm` is accepted; both names give the same result here. `copy_x` too: X is never
    changed. Beyond scikit-learn: `empty` says what becomes of a cluster without points
    ("farthest" is scikit-learn's rule, "keep", "error"), `engine` and `device` where the work is
    done, `callback` hears a `Progress` after each iteration, and with `warm_start` a fit begins at
    the centers of the last one.

    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = lf.KMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]), model.inertia_
    (array([ 1., 10.]), 16.0)
    """

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Streaming._parameter_constraints,
        "copy_x": ["boolean"],
        "algorithm": [StrOptions({"lloyd", "elkan"})],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        copy_x: bool | Any = True,
        algorithm: str | Any = "lloyd",
        empty: str | Any = "farthest",
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.empty = empty
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start

    def _recipe(self) -> Recipe:
        return recipes.lloyd()

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KMeans":
        """Cluster the rows of X: an array, a frame, a CSR matrix or a tensor."""
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warnings.warn(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
                stacklevel=2,
            )
        super().fit(X, sample_weight=sample_weight)
        return self


register(
    RegisteredAlgorithm(
        name="kmeans",
        estimator=KMeans,
        recipe=recipes.lloyd,
        oracle=algorithms.Lloyd,
        summary="round clusters of similar size; the fastest",
    )
)
