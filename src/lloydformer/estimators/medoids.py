"""K-medoids: centers that are rows of the data."""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.array_api import to_tensor
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.rows import DenseRows, Rows
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.engines.partitioned import PartitionedBlocks
from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.checkpoint import refuse_checkpoint
from lloydformer.estimators.medoid_matrix import (
    InterruptedSwaps,
    MatrixFit,
    distances_to_medoids,
    fit_matrix,
    to_input_kind,
)
from lloydformer.estimators.parameter_checks import (
    Interval,
    StrOptions,
    check_weights,
    checked_fit,
    make_generator,
)
from lloydformer.estimators.source import Source, View
from lloydformer.plans.contract import Plan
from lloydformer.plans.medoid_moves import METRICS
from lloydformer.plans.medoid_search import (
    EFFORTS,
    MedoidSearchPlan,
    SearchMoves,
    relocating_rounds,
    swapping_rounds,
)
from lloydformer.solving.driver import Result
from lloydformer.solving.medoid_search import MedoidMoves
from lloydformer.solving.rules import Rules

# Numbers of data in partitions that a search brings to one process, at most: 1 GB in float64.
_MOST_HERE = 1 << 27


class KMedoids(Clusterer):
    r"""K-medoids: centers are rows of X.

    Minimises $\sum_i w_i \min_j d(x_i, x_{m_j})$ over the rows $m_1 \dots m_k$ of the data, for a
    distance $d$. The default search needs memory linear in the number of rows and reaches the loss
    of FasterPAM, which needs all distances, in a fraction of its time.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    method : {"relocate", "fasterpam", "paper"}, default="relocate"
        - "relocate": exchanges medoids with rows near the middle of clusters and with drawn rows,
          relocates medoids, and ends with exchanges among many rows. Every step is made only if it
          lowers the loss. On a matrix of distances it is "fasterpam", for at most 256 rows from
          ten starts.
        - "fasterpam": exchanges medoids with every row, until no exchange lowers the loss.
        - "paper": randomised k-medoids as in the paper (alg:rnd-kmeds), a sampler and not a search.
          Each medoid moves to a row drawn with probability
          $\propto w_i \exp(-\lVert x_i - c_j \rVert^2 - 2\delta\, 1[a_i \ne j])$ with $\delta$
          = `separation`; the best medoids seen are kept. Squared Euclidean distances only.
    metric : {"sqeuclidean", "euclidean", "manhattan", "cosine", "precomputed"} or callable, default="sqeuclidean"
        The distance. "cosine" also takes sparse matrices. With "precomputed", X is a symmetric
        matrix (n, n) of distances. A callable gets two rows and returns their distance; all n * n
        of them are computed and kept.
    effort : {"low", "medium", "high", "best"}, default="medium"
        How long "relocate" searches. "low" does not relocate, and compares fewer rows in its last
        exchanges. "medium" stops after 5 consecutive relocations that did not lower the loss, or
        fewer if clusters have less than 50 rows and X has more than 256. "high" stops after 20 and
        "best" after 80; both draw more candidates, and compare more rows in their last exchanges.
    separation : float or None, default=100.0
        With method="paper": a point of another cluster is exp(-2 * separation) times as likely
        to be drawn as a point of the cluster at the same distance. None excludes points of other
        clusters.
    patience : int or None, default=None
        Stop after this many consecutive relocations that did not lower the loss; None: as `effort`
        says. With method="paper": stop a start after more than this many consecutive draws that
        did not lower the objective; None: only `max_iter` ends it.
    return_last : bool, default=False
        With method="paper": if True, return the last medoids drawn, as the paper does, instead
        of the best ones.
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
        `init` is "random" or a callable, or if method="relocate" gets a matrix of distances of
        at most 256 rows (given or computed by a callable), otherwise 1.
    max_iter : int, default=300
        Maximum number of iterations of one start: relocations and other moves of the search, or
        draws of the paper's sampler.
    verbose : int, default=0
        If not 0, print one line for each iteration: its number and its objective.
    random_state : int, RandomState instance or None, default=None
        Seed of every random number that the fit uses. With an int, repeated fits on the same
        device are bit-identical, for any number of threads.
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
        With method="paper" only: file that `fit` writes every few iterations and removes at its
        end. If it exists when a fit begins, the fit resumes from it; the result is bit-identical to
        an uninterrupted fit. For dense rows on the CPU, in one process, on a Dask cluster or on
        ranks. After resuming, some iterations may be passed to `callback` twice.

    Attributes
    ----------
    cluster_centers_ : ndarray or Tensor of shape (n_clusters, n_features)
        The medoids, equal to rows of X to the last bit; with metric="cosine" divided by their
        norms. A tensor if X was a tensor.
    labels_ : ndarray or Tensor of shape (n_samples,)
        Cluster of each row: the index of its nearest center in `cluster_centers_`. On ties the
        lower index. A tensor if X was a tensor.
    inertia_ : float
        Sum over the rows of their weight times the distance to the nearest center.
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
    medoid_indices_ : ndarray or Tensor of shape (n_clusters,)
        Indices of the rows of X that are the medoids.
    best_objective_history_ : ndarray of shape (n_iter_ + 1,)
        Smallest value of `objective_history_` so far.

    See Also
    --------
    KMeans : Centers are means, and need not be rows of X.

    Notes
    -----
    docs/medoids.md has the search step by step, and measurements. With "relocate" and "fasterpam"
    `objective_history_` never rises, and results do not depend on the scale of the data.

    On a matrix of distances, given or computed by a callable, the work is done on the CPU. `init` is
    "k-means++", "random" or an array of row numbers; other strings draw as "k-means++" does.
    `effort`, `patience`, `max_iter`, `verbose`, `callback`, `warm_start` and `reference_centers`
    have no effect. Ctrl-C keeps the best medoids so far. Distances must be so small that their sum
    over all rows is finite.

    With method="paper" the draws depend on the scale. If squared distances are far below 1, all
    rows of a cluster are about equally likely; if they are in the hundreds, a medoid never moves.
    A medoid without points is drawn from the points of other clusters.

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
    >>> model = lf.KMedoids(2, random_state=0).fit(X)
    >>> np.sort(model.medoid_indices_), model.inertia_
    (array([1, 4]), 4.0)
    """  # noqa: E501

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k not in ("tol", "empty")},
        "method": [StrOptions({"relocate", "fasterpam", "paper"})],
        "metric": [StrOptions({*METRICS, "precomputed"}), callable],
        "effort": [StrOptions(set(EFFORTS))],
        "separation": [None, Interval(Real, 0, None, closed="left")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "return_last": ["boolean"],
    }
    _renamed_parameters: ClassVar[dict[str, str]] = {
        **Clusterer._renamed_parameters,
        "algorithm": "method",
    }
    _renamed_values: ClassVar[dict[str, dict[str, str]]] = {
        "effort": {"quick": "low", "balanced": "medium", "thorough": "high"}
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        method: str | Any = "relocate",
        metric: Any = "sqeuclidean",
        effort: str | Any = "medium",
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
        reference_centers: Any = None,
        checkpoint: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.method = method
        self.metric = metric
        self.effort = effort
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
        self.reference_centers = reference_centers
        self.checkpoint = checkpoint

    @property
    def _directions(self) -> bool:  # type: ignore[override]
        return isinstance(self.metric, str) and self.metric == "cosine"

    @property
    def _has_kernels(self) -> bool:  # type: ignore[override]
        # The kernels for new rows compute Euclidean distances.
        return not (isinstance(self.metric, str) and self.metric == "manhattan")

    _cosine_distances = _accepts_sparse = _directions
    _sparse_on_gpu: ClassVar[bool] = False  # the search reads sparse rows

    @property
    def _of_matrix(self) -> bool:
        """True if all distances are kept, given or computed by a callable."""
        return callable(self.metric) or self.metric == "precomputed"

    def __sklearn_tags__(self) -> Any:
        # scikit-learn cuts a matrix of distances in both directions, if it knows that X is one.
        tags = super().__sklearn_tags__()
        given = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.pairwise = tags.input_tags.positive_only = given
        return tags

    def _recipe(self) -> Recipe:
        return recipes.medoids(None if self.separation is None else float(self.separation))

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        if self.method == "paper":
            return super()._plan(rng)
        return MedoidSearchPlan(self.metric)

    def _prepare(self, opened: Preparation) -> Prepared:
        plan, restarts, algorithm = super()._prepare(opened)
        if self.method == "paper":
            return plan, restarts, algorithm
        blocks = opened.blocks
        n_rows, n_features = blocks.layout.n_rows, blocks.layout.n_features
        if isinstance(blocks, PartitionedBlocks) and n_rows * n_features > _MOST_HERE:
            raise ValueError(
                f"method: found {self.method!r} for {n_rows:,} rows in parts; "
                'it needs all rows in one process, so pass method="paper", or a sample'
            )
        seed, effort = int(opened.rng.randint(2**31 - 1)), EFFORTS[self.effort]
        if self.patience is not None:
            # rows_each=0: a patience of the user holds for clusters of any size
            effort = replace(effort, patience=int(self.patience), rows_each=0)

        def moves(search: SearchMoves, first: int) -> Iterator[bool]:
            if self.method == "fasterpam":
                return swapping_rounds(search, n_rows)
            return relocating_rounds(search, effort, seed, n_rows, first)

        return plan, restarts, MedoidMoves(self.metric, moves)

    def _rules(self) -> Rules:
        # Every move puts medoids on rows, so no cluster has to be filled.
        return Rules(
            int(self.max_iter),
            patience=self.patience,
            return_last=self.return_last,
            empty="keep",
        )

    @checked_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KMedoids":
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row; with metric="precomputed" their distances to each other.
            Sparse matrices only with metric="cosine".
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice; a row with weight 0
            does not count, and is never a medoid. None: every row has weight 1.

        Returns
        -------
        KMedoids
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If parameters do not go together, or X cannot be clustered.

        See Also
        --------
        Clusterer.predict : Assign rows to the fitted medoids.

        Examples
        --------
        >>> import lloydformer as lf
        >>> distances = [[0.0, 1.0, 9.0], [1.0, 0.0, 8.0], [9.0, 8.0, 0.0]]
        >>> lf.KMedoids(2, metric="precomputed", random_state=0).fit(distances).inertia_
        1.0
        """
        if self.method == "paper" and self.metric != "sqeuclidean":
            raise ValueError(
                f'metric: found {self.metric!r} with method="paper", which supports only '
                '"sqeuclidean"; pass method="relocate"'
            )
        if self.method != "paper":
            refuse_checkpoint(self, f'there is none for method="{self.method}"')
        if not self._of_matrix:
            super().fit(X, sample_weight=sample_weight)
            return self
        if isinstance(X, Shard):
            raise ValueError(
                f"metric: found {self.metric!r} for a shard; it needs all distances in one process"
            )
        try:
            found = fit_matrix(self, X, sample_weight, make_generator(self.random_state))
        except InterruptedSwaps as stop:
            if stop.found is not None:
                self._keep_matrix(stop.found, X)
            raise
        self._keep_matrix(found, X)
        return self

    def _keep_matrix(self, found: MatrixFit, X: Any) -> None:
        self.medoid_indices_ = to_input_kind(X, found.medoids)
        self.labels_ = to_input_kind(X, found.labels)
        self.cluster_centers_, self.inertia_ = to_input_kind(X, found.centers), found.history[-1]
        self.n_iter_ = len(found.history) - 1
        self.objective_history_ = np.array(found.history)
        self.best_objective_history_ = np.minimum.accumulate(self.objective_history_)
        # Rows are compared by the metric as they are; the view only completes the saved model.
        self._view = View(torch.zeros(found.centers.shape[1], dtype=torch.float64), None)
        self._n_features_out, self._n_init = self.n_clusters, found.n_starts

    def _store(self, result: Result, source: Source, plan: Plan) -> None:
        super()._store(result, source, plan)
        rows, blocks = result.outcome.rows, source.blocks
        assert rows is not None
        assert isinstance(blocks, TensorBlocks | SparseBlocks | PartitionedBlocks)
        if not isinstance(blocks, SparseBlocks) and not self._directions:
            # Rows of X to the last bit: the result's centers were shifted to the origin and back.
            if isinstance(blocks, TensorBlocks):
                medoids = blocks.data_points[rows.to(blocks.device)]
            else:
                medoids, scaling = blocks.subset(rows).points, blocks.layout.scaling
                medoids = medoids if scaling is None else scaling.unbend(medoids)
            self.cluster_centers_ = source.to_input_kind(medoids)
        self.medoid_indices_ = source.to_input_kind(rows)
        self.best_objective_history_ = np.minimum.accumulate(self.objective_history_)

    def predict(self, X: Any) -> Any:
        """Find the nearest medoid of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row; with metric="precomputed" their distances to the rows that
            were fitted, (n_samples, n_fitted).

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            Index of the nearest medoid; on ties the lower index.

        See Also
        --------
        KMedoids.transform : The distances to all medoids.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMedoids(2, metric="manhattan", random_state=0)
        >>> bool(model.fit([[0.0], [1.0], [9.0]]).predict([[7.0]]) == model.predict([[9.0]]))
        True
        """
        if not self._of_matrix or is_collection(X):
            return super().predict(X)
        check_is_fitted(self)
        return to_input_kind(X, distances_to_medoids(self, X).argmin(axis=1).astype(np.int32))

    def transform(self, X: Any) -> Any:
        """Compute the distance of each row to each medoid.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, as for `predict`.

        Returns
        -------
        ndarray or Tensor of shape (n_samples, n_clusters)
            Distances by the metric; Euclidean ones for "sqeuclidean".

        See Also
        --------
        KMedoids.predict : The nearest medoid only.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMedoids(1, metric="manhattan").fit([[0.0, 0.0]])
        >>> model.transform([[1.0, 2.0]])
        array([[3.]])
        """
        if not self._of_matrix or is_collection(X):
            return super().transform(X)
        check_is_fitted(self)
        return to_input_kind(X, distances_to_medoids(self, X))

    def _all_distances(self, rows: Rows, centers: Tensor, returned: Tensor) -> Tensor:
        if self.metric != "manhattan":
            return super()._all_distances(rows, centers, returned)
        assert isinstance(rows, DenseRows)  # sparse ones are only compared by their cosine
        return torch.cdist(rows.points, centers, p=1)

    def distances_to_centers(self, X: Any, labels: Any = None) -> Any:
        """Compute the distance of each row to the medoid of its cluster.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, as for `predict`.
        labels : array-like or Tensor of shape (n_samples,), default=None
            The cluster of each row, from 0 to n_clusters - 1. None: the clusters of `predict`.

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            Distances by the metric, as `transform` returns them: Euclidean ones for
            "sqeuclidean".

        See Also
        --------
        KMedoids.transform : The distances to all medoids.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMedoids(1, metric="manhattan").fit([[0.0, 0.0]])
        >>> model.distances_to_centers([[1.0, 2.0]])
        array([3.])
        """
        if not self._of_matrix or is_collection(X):
            return super().distances_to_centers(X, labels)
        check_is_fitted(self)
        every = distances_to_medoids(self, X)
        own = every.argmin(axis=1) if labels is None else to_tensor(labels).cpu().numpy()
        return to_input_kind(X, every[np.arange(len(every)), own])

    def _own_distances(self, rows: Rows, centers: Tensor, returned: Tensor, own: Tensor) -> Tensor:
        if self.metric != "manhattan":
            return super()._own_distances(rows, centers, returned, own)
        assert isinstance(rows, DenseRows)
        return (rows.points - centers[own]).abs().sum(dim=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute minus the loss of the rows of X with the fitted medoids.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, as for `predict`.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. None: every row has weight 1.

        Returns
        -------
        float
            Minus the loss, so that larger is better.

        See Also
        --------
        KMedoids.fit : Sets `inertia_`, the loss of the rows it was given.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMedoids(1).fit([[0.0]]).score([[2.0]])
        -4.0
        """
        if not self._of_matrix:
            return super().score(X, sample_weight=sample_weight)
        check_is_fitted(self)
        least = distances_to_medoids(self, X).min(axis=1)
        if sample_weight is None:
            return -float(least.sum())
        return -float(check_weights(sample_weight, len(least)) @ least)
