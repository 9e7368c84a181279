"""Trimmed k-means."""

from numbers import Real
from typing import Any, ClassVar

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.parameter_checks import Interval, StrOptions
from lloydformer.estimators.source import Source
from lloydformer.plans.contract import Plan
from lloydformer.solving.driver import Result


class TrimmedKMeans(Clusterer):
    """Trimmed k-means: the farthest points of each cluster do not count.

    In a cluster with total weight W, the points within the smallest radius that holds `keep` times
    W are kept, ties included (alg:trim-kmeans). The center is their mean. The others are outliers.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    keep : float, default=0.95
        Fraction of the weight of each cluster that stays, in (0, 1]. Choose it for the cluster
        that has the most outliers.
    init : {"k-means++", "k-means||", "robust", "random"}, array or callable, default="k-means++"
        Initial centers:

        - "k-means++": greedy k-means++, as in scikit-learn. Rows are drawn one after the other,
          each with probability proportional to its weight times its squared distance to the
          nearest center so far; each is the best of several candidates.
        - "k-means||": draws many candidates per pass over the data and reduces them to k.
          Takes six passes for any k; for data larger than memory.
        - "robust": k-means++ for data with outliers. Squared distances are capped at four times the
          squared radius that holds 80 % of the rows, and more candidates are tried.
        - "random": k different rows, drawn with probability proportional to their weight.
        - Array-like of shape (n_clusters, n_features): the centers themselves.
        - Callable: called as ``init(X, n_clusters, random_state=...)``; returns the centers.
    n_init : "auto" or int, default="auto"
        Number of starts. The result with the smallest `inertia_` is kept. "auto" is 10 if
        `init` is "random" or a callable, otherwise 1.
    max_iter : int, default=300
        Maximum number of iterations of one start.
    tol : float, default=1e-4
        Relative tolerance of the stop rule. A start ends when the squared distance that the
        centers moved in one iteration, summed over all centers, is at most `tol` times the
        mean variance of the columns. Outliers and columns of large numbers enlarge that variance.
        With 0, a start ends when its centers no longer move.
    verbose : int, default=0
        If not 0, print one line for each iteration: its number and its objective.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number that the fit uses. With an int, repeated fits on the same
        device are bit-identical, for any number of threads.
    empty : {"farthest", "keep", "error"}, default="farthest"
        What happens when a cluster loses all its points. "farthest" moves its center to the
        point that is farthest from its own center, as scikit-learn does; "keep" leaves its
        center where it is; "error" raises a `ValueError`.
    engine : {"auto", "native", "chunked", "cuda"}, default="auto"
        Implementation that runs the computation. "native" is compiled C++ for the CPU, "cuda" has
        kernels for NVIDIA GPUs (arrays are copied to one), "chunked" is PyTorch for any device.
        "auto" chooses the fastest one for the device that X is on.
    device : str, torch.device or None, default=None
        Device that does the work, for instance "cuda". Arrays are copied to it, and results are
        copied back. None uses the CPU for arrays and the device of X for tensors.
    callback : callable or None, default=None
        Called after each iteration with a `Progress`, which has the fields `start`,
        `iteration`, `objective` (of the centers at the beginning of the iteration), `shift`
        (squared distance that the centers moved), `n_points` and `seconds`. If it raises
        `KeyboardInterrupt`, the fit ends and keeps the best result so far.
    warm_start : bool, default=False
        If True and the estimator is fitted, `fit` begins at its `cluster_centers_` instead of
        using `init` and `n_init`.
    reference_centers : array-like, Tensor or None, default=None
        Earlier centers, one per row, for instance `cluster_centers_` of the last fit. Clusters are
        renumbered to match them: cluster j is the one paired with row j, in the pairing with the
        smallest sum of squared distances. Nothing else depends on it.
    checkpoint : str, PathLike or None, default=None
        File that `fit` writes every few iterations and removes at its end. If it exists when a fit
        begins, the fit resumes from it; the result is bit-identical to an uninterrupted fit. For
        dense rows on the CPU, in one process, on a Dask cluster or on ranks. After resuming, some
        iterations may be passed to `callback` twice.
    missing : {"error", "ignore", "impute"}, default="error"
        What happens to NaN in X, in `fit` as in `predict`, `transform` and `score`:

        - "error": a `ValueError` names the first one.
        - "ignore": rows and centers are compared by the observed values of the row; the squared
          distance is multiplied by the number of features over the number of observed values. A
          center is, in each feature, the mean of the observed values of its rows, which count by
          the same factor.
        - "impute": in each iteration, missing values of a row are those of its center (k-POD). The
          squared distance is the sum over the observed values.

        For dense rows in CPU memory. A row without any value is an error.

    Attributes
    ----------
    cluster_centers_ : ndarray or Tensor of shape (n_clusters, n_features)
        Centers of the best start, in the units of X. A tensor if X was a tensor.
    labels_ : ndarray or Tensor of shape (n_samples,)
        Cluster of each row that stays: the index of its nearest center in `cluster_centers_`.
        -1 for outliers. A tensor if X was a tensor.
    inertia_ : float
        Sum over the rows that stay of their weight times the squared distance to the nearest
        center.
    n_iter_ : int
        Number of iterations of the best start.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the centers at the beginning of each iteration of the best start, then that
        of the returned centers. The objective is the one of `inertia_`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.
    outliers_ : ndarray or Tensor of shape (n_outliers,)
        Indices of the rows that were trimmed.

    See Also
    --------
    RobustKMeans : Far points count less, none is named an outlier.
    KMeans : All points count.

    Notes
    -----
    A start ends when neither the labels nor the trimmed points change in an iteration, when `tol`
    is reached, or after `max_iter` iterations. `predict` gives every row its nearest center, never
    -1; `score` trims the rows that it is given. k-means++ prefers far points: with far outliers,
    `init="robust"`, or `init="random"` with several starts, gives better results. Outliers that lie
    close together can form a cluster of their own; then use one more cluster.

    References
    ----------
    .. [1] K. L. Clarkson, L. Horesh, T. Ito, C. Park and P. Ram, "Transformer Circuits Can Realize
       Clustering Algorithms".

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[0.0], [1.0], [2.0], [100.0], [50.0], [51.0], [52.0], [53.0]])
    >>> model = lf.TrimmedKMeans(2, keep=0.75, init=[[1.0], [51.0]]).fit(X)
    >>> model.outliers_
    array([3])
    >>> model.labels_
    array([ 0,  0,  0, -1,  1,  1,  1,  1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "keep": [Interval(Real, 0, 1, closed="right")],
        "missing": [StrOptions({"error", "ignore", "impute"})],
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
        reference_centers: Any = None,
        checkpoint: Any = None,
        missing: str | Any = "error",
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
        self.reference_centers = reference_centers
        self.checkpoint = checkpoint
        self.missing = missing

    def _recipe(self) -> Recipe:
        return recipes.trimmed(float(self.keep))

    def _store(self, result: Result, source: Source, plan: Plan) -> None:
        super()._store(result, source, plan)
        self.outliers_ = source.rows_with(self.labels_, -1)
