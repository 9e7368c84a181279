"""Randomised k-medoids."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import TensorBlocks
from lloydformer.engines.parts import PartsBlocks
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.parameter_checks import Interval
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.estimators.source import Source
from lloydformer.solving.rules import Rules
from lloydformer.solving.solve import Result


class KMedoids(Clusterer):
    r"""Randomised k-medoids: centers are rows of X, drawn again in each iteration.

    Each center moves to a point drawn with probability
    $\propto w_i \exp(-\lVert x_i - c_j \rVert^2 - 2\delta\, 1[a_i \ne j])$ with $\delta$ =
    `separation` (alg:rnd-kmeds). The best medoids seen are kept.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    separation : float or None, default=100.0
        A point of another cluster is exp(-2 * separation) times as likely to be drawn as a point of
        the cluster at the same distance. None excludes points of other clusters.
    patience : int or None, default=None
        A start ends after more than this number of draws in a row without a lower objective. None:
        only `max_iter` ends it.
    return_last : bool, default=False
        If True, return the last medoids drawn, as the paper does, instead of the best ones.
    init : {"k-means++", "k-means||", "robust", "random"}, array or callable, default="k-means++"
        Initial centers:

        - "k-means++": greedy k-means++, as in scikit-learn. Rows are drawn one after the other,
          each with probability proportional to its weight times its squared distance to the
          nearest center so far; each is the best of several candidates.
        - "k-means||": draws many candidates per pass over the data and reduces them to k.
          Takes six passes for any k; for data larger than memory.
        - "robust": k-means++ for data with outliers. Squared distances count at most four times the
          radius that holds 80 % of the rows, and more candidates are tried.
        - "random": k different rows, drawn with probability proportional to their weight.
        - Array-like of shape (n_clusters, n_features): the centers themselves.
        - Callable: called as ``init(X, n_clusters, random_state=...)``; returns the centers.
    n_init : "auto" or int, default="auto"
        Number of starts. The result with the smallest `inertia_` is kept. "auto" is 10 if
        `init` is "random" or a callable, otherwise 1.
    max_iter : int, default=300
        Maximum number of draws of one start.
    verbose : int, default=0
        If not 0, print one line for each iteration: its number and its objective.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number that the fit uses. With an int, repeated fits on the same
        device give the same bits, for any number of threads.
    engine : {"auto", "native", "chunked", "cuda"}, default="auto"
        Implementation that runs the computation. "native" is compiled C++ for the CPU, "cuda" has
        kernels for NVIDIA GPUs (arrays are copied to one), "chunked" is PyTorch for any device.
        "auto" chooses the fastest one for the device that X is on.
    device : str, torch.device or None, default=None
        Device that does the work, for instance "cuda". Arrays are copied to it, and results are
        copied back. None uses the CPU for arrays and the device of X for tensors. Sparse
        matrices are processed on the CPU.
    callback : callable or None, default=None
        Called after each iteration with a `Progress`, which has the fields `start`,
        `iteration`, `objective` (of the centers at the beginning of the iteration), `shift`
        (squared distance that the centers moved), `n_points` and `seconds`. If it raises
        `KeyboardInterrupt`, the fit ends and keeps the best result so far.
    warm_start : bool, default=False
        If True and the estimator is fitted, `fit` begins at its `cluster_centers_` instead of
        using `init` and `n_init`.
    match_to : array-like, Tensor or None, default=None
        Earlier centers, one per row, for instance `cluster_centers_` of the last fit. Clusters are
        numbered after them: number j goes to the center that is paired with row j, in the pairing
        with the smallest sum of squared distances. Only the numbers of clusters depend on it.

    Attributes
    ----------
    cluster_centers_ : ndarray or Tensor of shape (n_clusters, n_features)
        The medoids, equal to rows of X to the last bit. A tensor if X was a tensor.
    labels_ : ndarray or Tensor of shape (n_samples,)
        Cluster of each row: the index of its nearest center in `cluster_centers_`. On ties the
        lower index. A tensor if X was a tensor.
    inertia_ : float
        Sum over the rows of their weight times the squared distance to the nearest center.
    n_iter_ : int
        Number of iterations of the best start.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the centers at the beginning of each iteration of the best start, then that
        of the returned centers. The objective is the one of `inertia_`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open`.
    medoid_indices_ : ndarray or Tensor of shape (n_clusters,)
        Indices of the rows of X that are the medoids.
    best_objective_history_ : ndarray of shape (n_iter_ + 1,)
        Smallest value of `objective_history_` so far.

    See Also
    --------
    KMeans : Centers are means, and need not be rows of X.

    Notes
    -----
    The draws depend on the scale of the data. If squared distances are about 1, they are neither
    blind nor greedy; if they are in the hundreds, a medoid never moves. A medoid without points is
    drawn from the points of other clusters. This is the sampler of the paper, not a search: where
    the objective matters most, FasterPAM (package `kmedoids`) finds lower ones.

    References
    ----------
    .. [1] K. L. Clarkson, L. Horesh, T. Ito, C. Park and P. Ram, "Transformer Circuits Can Realize
       Clustering Algorithms".
    .. [2] E. Schubert and P. J. Rousseeuw, "Fast and eager k-medoids clustering", Information
       Systems 101, 2021.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
    >>> model = lf.KMedoids(2, max_iter=50, random_state=0).fit(X)
    >>> np.sort(model.medoid_indices_), model.inertia_
    (array([1, 4]), 4.0)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k not in ("tol", "empty")},
        "separation": [None, Interval(Real, 0, None, closed="left")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "return_last": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        separation: float | Any | None = 100.0,
        patience: int | Any | None = None,
        return_last: bool | Any = False,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        verbose: int | Any = 0,
        random_state: Any = None,
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
        match_to: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.separation = separation
        self.patience = patience
        self.return_last = return_last
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start
        self.match_to = match_to

    def _recipe(self) -> Recipe:
        return recipes.medoids(None if self.separation is None else float(self.separation))

    def _rules(self) -> Rules:
        return Rules(
            int(self.max_iter),
            patience=self.patience,
            return_last=self.return_last,
            empty="keep",
        )

    def _keep(self, result: Result, source: Source) -> None:
        super()._keep(result, source)
        rows = result.outcome.rows
        assert rows is not None
        assert isinstance(source.blocks, TensorBlocks | PartsBlocks)
        self.cluster_centers_ = source.out(source.blocks.subset(rows).points)  # to the last bit
        self.medoid_indices_ = source.out(rows)
        self.best_objective_history_ = np.minimum.accumulate(self.objective_history_)


register(
    RegisteredAlgorithm(
        name="medoids",
        estimator=KMedoids,
        recipe=recipes.medoids,
        oracle=algorithms.Medoids,
        summary="centers that are points of the data",
    )
)
