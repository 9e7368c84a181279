"""K-means with bounds on the sizes of its clusters."""

from numbers import Real
from typing import Any, ClassVar

import torch
from sklearn.utils.validation import check_is_fitted

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import Blocks, count_positive_weights
from lloydformer.engines import choose
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.engines.partitioned import PartitionedBlocks
from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.parameter_checks import Interval
from lloydformer.estimators.source import Source
from lloydformer.numerics.transport import read_sizes, resolve_sizes
from lloydformer.plans.constrained import ConstrainedPlan
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.constrained import BoundedIterations
from lloydformer.solving.driver import Restarts, Result


class ConstrainedKMeans(Clusterer):
    r"""K-means whose clusters have at least `size_min` and at most `size_max` points.

    Minimises $\sum_i w_i \lVert x_i - c_{a_i} \rVert^2$ over centers and labels $a$ such that
    $l_j \le |\{i : a_i = j\}| \le u_j$. Each iteration assigns the points at the smallest cost
    within the bounds, exactly, and moves each center to the mean of its points, so the objective
    never rises.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    size_min : int, float, array-like or None, default=None
        Fewest rows of a cluster: a number of rows (int), or a fraction of all rows (float), rounded
        down. One for all clusters, or one for each. None: no bound.
    size_max : int, float, array-like or None, default=None
        Most rows of a cluster, in the same way; a fraction is rounded up. With ``1 / n_clusters``
        for both, sizes differ by at most one.
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
        Implementation that runs the computation. "native" is compiled C++ for the CPU; rows of a
        Dask cluster or of ranks are copied to each process that runs it. Others ("chunked", and
        "cuda" on a GPU) assign in NumPy with all n_samples * n_clusters distances in memory: for
        small data. "auto" chooses by the device that X is on.
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

    Attributes
    ----------
    cluster_centers_ : ndarray or Tensor of shape (n_clusters, n_features)
        Centers of the best start, in the units of X. A tensor if X was a tensor.
    labels_ : ndarray or Tensor of shape (n_samples,)
        Cluster of each row, within the bounds: not always that of the nearest center. A tensor if X
        was a tensor.
    inertia_ : float
        Sum over the rows of their weight times the squared distance to the center of their own
        cluster.
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
    sizes_ : ndarray or Tensor of shape (n_clusters,)
        Number of rows with positive weight in each cluster.
    gap_ : float
        Proved bound of the relative difference between `inertia_` and the inertia of the cheapest
        labels within the bounds, for these centers. Rounding leaves about 1e-15.
    prices_ : ndarray or Tensor of shape (n_clusters,)
        Price of a place in each cluster, in units of `inertia_`: positive where `size_max` turns
        rows away, negative where `size_min` draws them in, otherwise 0. Each row is in a cluster
        with its smallest squared distance (times its weight) plus price, which is what proves
        `gap_`.

    See Also
    --------
    KMeans : Without bounds.
    lloydformer.recipes.constrained : The recipe, also at a finite temperature.

    Notes
    -----
    Bounds count rows, not weights: a row is never split between clusters, and no choice of whole
    rows may give the weight that a bound asks for. A weight multiplies the cost of its row. Rows of
    weight 0 count in no cluster and get the nearest center.

    `predict` gives every row its nearest center, whatever the bounds; ``predict(X, bounded=True)``
    assigns the rows of X within the bounds, where fractions are those of the rows of this X.
    `score` is that of the nearest centers.

    With one bound for each cluster, bound j belongs to center j, and so to row j of a given `init`.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [20.0]])
    >>> lf.KMeans(2, init=[[0.0], [20.0]]).fit_predict(X)
    array([0, 0, 0, 0, 0, 1], dtype=int32)
    >>> model = lf.ConstrainedKMeans(2, size_max=4, init=[[0.0], [20.0]]).fit(X)
    >>> model.labels_, model.sizes_
    (array([0, 0, 0, 0, 1, 1], dtype=int32), array([4, 2]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "size_min": [None, Interval(Real, 0, None, closed="left"), "array-like"],
        "size_max": [None, Interval(Real, 0, None, closed="left"), "array-like"],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        size_min: Any = None,
        size_max: Any = None,
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
    ) -> None:
        self.n_clusters = n_clusters
        self.size_min = size_min
        self.size_max = size_max
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

    def _recipe(self) -> Recipe:
        return recipes.constrained(self.size_min, self.size_max)

    def _prepare(self, opened: Preparation) -> Prepared:
        initial = opened.initial
        restarts = Restarts(initial.n_restarts, initial.generate(opened.session))
        return self._plan(opened.rng), restarts, BoundedIterations()

    def _check_size(self, blocks: Blocks) -> None:
        super()._check_size(blocks)
        self._check_bounds(blocks)

    def _check_bounds(self, blocks: Blocks) -> None:
        """Raise `ValueError` if no assignment of the rows is within the bounds."""
        count = blocks.layout.n_rows
        if isinstance(blocks, PartitionedBlocks):
            count = blocks.n_weighted
        elif blocks.layout.weighted:
            count = count_positive_weights(blocks)
        sizes = read_sizes("size_min", self.size_min), read_sizes("size_max", self.size_max)
        resolve_sizes(*sizes, count, int(self.n_clusters))
        if self.reference_centers is not None and max(map(len, sizes)) > 1:
            raise ValueError(
                "reference_centers: found together with a bound for each cluster, whose numbers "
                "it would change; pass the earlier centers as init"
            )

    def _validate_params(self) -> None:
        super()._validate_params()
        read_sizes("size_min", self.size_min)
        read_sizes("size_max", self.size_max)

    def _store(self, result: Result, source: Source, plan: Plan) -> None:
        super()._store(result, source, plan)
        certificate, device = result.outcome.certificate, result.centers.device
        assert certificate is not None
        prices = torch.tensor(certificate.prices, dtype=torch.float64, device=device)
        self.gap_, self.prices_ = certificate.gap, source.to_input_kind(prices)
        self.sizes_ = source.to_input_kind(torch.tensor(certificate.sizes, device=device))

    def _assign(self, X: Any, sample_weight: Any = None) -> tuple[Any, float]:
        # The nearest centers, as `predict` without `bounded`.
        return self._assign_by(MeansPlan(), X, sample_weight)

    def _assign_by(self, plan: Plan, X: Any, sample_weight: Any = None) -> tuple[Any, float]:
        source = self._read(X, sample_weight, reset=False)
        if isinstance(plan, ConstrainedPlan):
            self._check_bounds(source.blocks)
        with choose(self.engine, source.blocks).open(source.blocks) as session:
            final = plan.finish(session, *self._centers(session.layout))
            (inertia,) = session.layout.apply_weight_unit(final.inertia)
            return source.to_input_kind(session.labels()), inertia

    def predict(self, X: Any, bounded: bool = False) -> Any:
        """Find the nearest center of each row, or assign the rows within the bounds.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        bounded : bool, default=False
            If True, labels are the cheapest ones within `size_min` and `size_max` for the rows of X
            together: fractions are those of these rows, numbers of rows are as they are. If False,
            each row gets its nearest center.

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            Index of a center in `cluster_centers_`; of nearest centers on ties the lower index. A
            tensor if X is a tensor.

        Raises
        ------
        ValueError
            If `bounded` is True and no assignment of these rows is within the bounds.

        See Also
        --------
        Clusterer.transform : The distances to all centers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.ConstrainedKMeans(2, size_max=0.5, init=[[0.0], [9.0]])
        >>> model = model.fit([[0.0], [1.0], [8.0], [9.0]])
        >>> model.predict([[2.0], [3.0]]), model.predict([[2.0], [3.0]], bounded=True)
        (array([0, 0], dtype=int32), array([0, 1], dtype=int32))
        """
        if not bounded:
            return super().predict(X)
        check_is_fitted(self)
        if is_collection(X):
            raise ValueError(
                "bounded: found True for a dask collection, whose chunks are assigned one by one; "
                "pass an array"
            )
        return self._assign_by(self._plan(), X)[0]
