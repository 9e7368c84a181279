"""Base class of the estimators; each of them only names its recipe and its attributes."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
from os import PathLike
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lloydformer.circuits.recipe import Recipe
from lloydformer.data.array_api import to_tensor
from lloydformer.data.blocks import Blocks, count_positive_weights, leaf_ranges
from lloydformer.data.column_statistics import Scaling
from lloydformer.data.layout import Layout
from lloydformer.data.missing import MaskedBlocks
from lloydformer.data.rows import Rows
from lloydformer.data.shard import Shard
from lloydformer.engines import choose
from lloydformer.engines.dask.chunks import is_array, is_collection
from lloydformer.engines.partitioned import DistributedLabels, PartitionedBlocks
from lloydformer.engines.thread_pool import callers_cores, map_on_single_cores, one_core
from lloydformer.estimators.checkpoint import (
    open_as_partition,
    open_checkpoint,
    refuse_checkpoint,
)
from lloydformer.estimators.initial_centers import InitialCenters
from lloydformer.estimators.matching import match_clusters, read_reference_centers, renumber
from lloydformer.estimators.one_pass import open_one_pass
from lloydformer.estimators.parameter_checks import (
    Interval,
    StrOptions,
    check_enough_rows,
    checked_fit,
    find_invalid_parameter,
)
from lloydformer.estimators.presentation import Presented
from lloydformer.estimators.saved import LAZY, Saved
from lloydformer.estimators.shards import read_shard
from lloydformer.estimators.source import Source, View, missing_policy, read
from lloydformer.numerics.checks import RefusedArgumentError
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import lower
from lloydformer.plans.missing import plan_for_missing
from lloydformer.plans.session import Session
from lloydformer.solving.driver import Interrupted, Restarts, Result, solve
from lloydformer.solving.early_stop import describe_early_stop
from lloydformer.solving.iterations import PlanIterations
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import FitAlgorithm, FitContext, Progress
from lloydformer.user_warnings import warn_user

# Chunk size of a pass over the labels; bounds temporary memory (labels are indices of 8 bytes).
_CHUNK = 1 << 18

# Recipes are values: equal ones are lowered to the same plan. Lowering takes 0.6 ms, as long as a
# small fit.
_lower_once = lru_cache(maxsize=64)(lower)


@dataclass(frozen=True)
class Preparation:
    """The data and draws of a fit, from which an estimator prepares its algorithm.

    Attributes
    ----------
    initial : InitialCenters
        Makes initial centers.
    blocks : Blocks
        The data.
    session : Session
        The data, opened by an engine.
    rng : RandomState
        Source of the draws.
    deadline : float
        End of the fit by `perf_counter`, in seconds; infinity without a time limit.
    """

    initial: InitialCenters
    blocks: Blocks
    session: Session
    rng: np.random.RandomState
    deadline: float = math.inf


# The inputs of `solve`: the plan, the initial centers of all restarts, and the algorithm.
Prepared = tuple[Plan, Restarts, FitAlgorithm]


class Clusterer(Presented, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Saved):
    """Base class of the estimators.

    It is not an algorithm itself. Use it to load a model of any class: `Clusterer.from_pretrained`.
    Constructors store their arguments unchecked, so their types end in `| Any`; `fit` raises for
    values that are not allowed.

    See Also
    --------
    KMeans : Lloyd's algorithm.
    CircuitClusterer : The algorithm of any recipe.

    Examples
    --------
    >>> import lloydformer as lf
    >>> isinstance(lf.KMeans(), lf.Clusterer)
    True
    """

    _accepts_sparse: ClassVar[bool] = False
    _sparse_on_gpu: ClassVar[bool] = True  # False: sparse matrices stay on the CPU
    _directions: ClassVar[bool] = False
    _cosine_distances: ClassVar[bool] = False  # what `transform` returns; False: Euclidean ones
    _has_kernels: ClassVar[bool] = True  # False: the kernels do not know the distance
    # True: a few rows far away do not enlarge the tolerance (`Rules.typical`). Not in general:
    # `KMeans` stops where scikit-learn's does. See `with_typical_tolerance`.
    _typical_tolerance: bool = False
    _n_pool: ClassVar[int] = 1  # starts whose solutions are combined to one result

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [
            StrOptions({"k-means++", "k-means||", "robust", "random"}),
            callable,
            "array-like",
            "sparse matrix",
            Tensor,
        ],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, 2**63 - 1, closed="both")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "empty": [StrOptions({"farthest", "keep", "error"})],
        "engine": [str],
        "device": [None, str, torch.device],
        "callback": [None, callable],
        "warm_start": ["boolean"],
        "reference_centers": [None, "array-like", "sparse matrix", Tensor],
        "checkpoint": [None, str, PathLike],
    }
    _renamed_parameters: ClassVar[dict[str, str]] = {"match_to": "reference_centers"}

    def _recipe(self) -> Recipe:
        """Return the recipe that this estimator runs, with its parameters."""
        raise NotImplementedError

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        """Return the lowered recipe; a plan that draws takes its seed from `random_state`."""
        plan = _lower_once(self._recipe())
        return plan if rng is None else plan.with_seed(int(rng.randint(2**31 - 1)))

    def _rules(self) -> Rules:
        typical = self._typical_tolerance
        return Rules(int(self.max_iter), float(self.tol), self.empty, typical=typical)

    def _prepare(self, opened: Preparation) -> Prepared:
        """Return the plan, initial centers for each restart, and the algorithm of a fit."""
        if getattr(self, "batch_size", None) is not None:
            if isinstance(opened.blocks, MaskedBlocks):
                raise RefusedArgumentError("batch_size", "X has missing values")
            return self._prepare_batches(opened)
        initial = opened.initial
        # A generator: the driver draws initial centers when it needs them, and a resumed fit has
        # those of its checkpoint.
        restarts = Restarts(initial.n_restarts, initial.generate(opened.session))
        return self._fit_plan(opened), restarts, PlanIterations()

    def _make_initial(self, X: Any, blocks: Blocks, rng: np.random.RandomState) -> InitialCenters:
        """Return what makes the initial centers of a fit."""
        filled = blocks.filled if isinstance(blocks, MaskedBlocks) else None
        return InitialCenters(self, X, blocks.layout, rng, filled)

    def _fit_plan(self, opened: Preparation) -> Plan:
        """Return the plan of a fit, which is another one for rows with missing values."""
        plan = self._plan(opened.rng)
        if isinstance(opened.blocks, MaskedBlocks):
            plan = plan_for_missing(plan, missing_policy(self))
        return plan

    def _plan_for(self, blocks: Blocks) -> Plan:
        """Return the plan that assigns new rows; plans for missing values assign as others do."""
        return self._plan()

    def _prepare_batches(self, opened: Preparation) -> Prepared:
        """Return the same for a fit by random batches; estimators with `batch_size` have it."""
        raise NotImplementedError

    # A method, because `CircuitClusterer` checks more of the rows.
    _read = read

    @checked_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Clusterer":
        """Cluster the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        Clusterer
            The fitted estimator itself. Its array attributes are tensors on the device of X if X is
            a tensor, otherwise NumPy arrays.

        See Also
        --------
        Clusterer.fit_predict : Fit and return the labels.
        Clusterer.predict : Assign rows to the fitted centers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.SoftKMeans(1).fit([[0.0], [2.0]]).cluster_centers_
        array([[1.]])
        """
        # scikit-learn's `KMeans` warns of this. Here the name changes nothing: kernels decide on
        # bounds themselves.
        if vars(self).get("algorithm") == "elkan" and self.n_clusters == 1:
            warn_user(
                "algorithm='elkan' doesn't make sense for a single cluster. Using 'lloyd' instead.",
                RuntimeWarning,
            )
        # Not in `read`: `shards` imports `source`.
        source: Source = (
            read_shard(self, X, sample_weight)
            if isinstance(X, Shard)
            else self._read(X, sample_weight, reset=True)
        )
        # Classes of other packages may lack parameters that are newer than they are.
        has_checkpoint = getattr(self, "checkpoint", None) is not None
        if has_checkpoint:
            if isinstance(source.blocks, MaskedBlocks):
                refuse_checkpoint(self, "X has missing values")
            source = open_as_partition(self, source)
        blocks = source.blocks
        self._check_size(blocks)
        # Read now, so that errors come before the work.
        given = getattr(self, "reference_centers", None)
        earlier = None if given is None else read_reference_centers(given, blocks.layout)
        rng = source.generator(self.random_state)
        initial = self._make_initial(X, blocks, rng)
        self._n_init = initial.n_restarts  # a name of scikit-learn
        stopped: Interrupted | None = None
        with (
            choose(self.engine, blocks).open(blocks) as session,
            (
                open_checkpoint(self, source, session, initial, rng)
                if has_checkpoint
                else nullcontext()
            ) as checkpoint,
        ):
            limit, callback = getattr(self, "time_limit", None), self.callback
            deadline = math.inf if limit is None else perf_counter() + float(limit)
            opened = Preparation(initial, blocks, session, rng, deadline)
            plan, restarts, algorithm = self._prepare(opened)
            if self.verbose:

                def print_line(progress: Progress) -> None:
                    print(f"Iteration {progress.iteration}, objective {progress.objective}.")
                    if self.callback is not None:
                        self.callback(progress)

                callback = print_line
            watched = callback is not None
            if callback is not None:
                callback = callers_cores()(callback)
            context = FitContext.create(
                plan, session, self._rules(), watched=watched, deadline=deadline
            )
            try:
                result = solve(context, restarts, algorithm, callback, checkpoint)
            except Interrupted as stop:
                if stop.result is None:  # Ctrl-C came before the first result
                    raise
                stopped, result = stop, stop.result
            if earlier is not None:
                result = renumber(result, match_clusters(result.centers, earlier))
            # Before the session closes: it lends its labels, and workers hold those of a cluster.
            self._store(result, source, plan)
            if stopped is not None:
                raise stopped  # inside of the block, so that the checkpoint stays
            # Not for other algorithms: mini-batches estimate their objective, and relocations
            # have a tolerance that large values do not enlarge.
            if isinstance(algorithm, PlanIterations):
                message = describe_early_stop(context, result)
                if message is not None:
                    warn_user(message, ConvergenceWarning)
        return self

    def _store(self, result: Result, source: Source, plan: Plan) -> None:
        """Set the fitted attributes. `plan` is that of `_prepare`."""
        layout, labels = source.blocks.layout, result.labels
        self._view = View(layout.origin, layout.scaling)
        self.cluster_centers_ = source.to_input_kind(layout.to_data_units(result.centers))
        # Masses show clusters without points at no cost. Plans without masses need a pass over the
        # labels.
        if not all(result.outcome.masses or (0.0,)):
            if isinstance(labels, DistributedLabels):
                count = labels.count_clusters(int(self.n_clusters))
            else:
                seen = torch.zeros(int(self.n_clusters), dtype=torch.bool, device=labels.device)
                for part in torch.split(labels, _CHUNK):
                    seen[part.long()] = True
                count = int(seen.sum())
            message = self._describe_fewer_clusters(count)
            if message is not None:
                warn_user(message, ConvergenceWarning)
        if result.trimmed is not None and isinstance(labels, Tensor):
            labels.masked_fill_(result.trimmed, -1)
        self.labels_ = source.to_input_kind(labels)
        self.inertia_ = result.inertia
        self.n_iter_ = result.n_iter
        self.objective_history_ = np.array(result.outcome.history)
        self._n_features_out = self.n_clusters

    def _describe_fewer_clusters(self, count: int) -> str | None:
        """Return a warning if only `count` clusters have points; None if all have."""
        if count == self.n_clusters:
            return None
        return (
            f"Number of distinct clusters ({count}) found smaller than n_clusters "
            f"({self.n_clusters}). Possibly due to duplicate points in X."
        )

    def _check_size(self, blocks: Blocks) -> None:
        """Raise `ValueError` if fewer rows than clusters have a weight above 0."""
        count = blocks.layout.n_rows
        if isinstance(blocks, PartitionedBlocks):
            count = blocks.n_weighted
        elif blocks.layout.weighted:
            count = count_positive_weights(blocks)
        check_enough_rows(self, count, blocks.layout.n_rows)

    def _centers(self, layout: Layout) -> tuple[Tensor, Tensor]:
        """Return the fitted centers in the coordinates and the precision of the rows, and exactly.

        The second ones are those of `Layout.to_exact_units`. Both are contiguous: the last bits of
        a product depend on the memory layout of its factors.
        """
        fitted = to_tensor(self.cluster_centers_)
        placed = layout.to_row_units(fitted).to(layout.dtype)
        exact = layout.to_exact_units(fitted)
        return placed.clone(memory_format=torch.contiguous_format), exact.contiguous()

    @one_core()
    def _assign(self, X: Any, sample_weight: Any = None) -> tuple[Any, float]:
        """Return labels and inertia of other data, by the last assignment of a fit."""
        source = self._read(X, sample_weight, reset=False)
        with choose(self.engine, source.blocks).open(source.blocks) as session:
            plan = self._plan_for(source.blocks)
            final = plan.finish(session, *self._centers(session.layout))
            (inertia,) = session.layout.apply_weight_unit(final.inertia)
            return source.to_input_kind(session.labels()), inertia

    def predict(self, X: Any) -> Any:
        """Find the nearest center of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            Index of the nearest center in `cluster_centers_`; on ties the lower index. Never -1. A
            tensor if X is a tensor.

        See Also
        --------
        Clusterer.transform : The distances to all centers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMeans(2, init=[[0.0], [9.0]]).fit([[0.0], [1.0], [8.0], [9.0]])
        >>> model.predict([[2.0], [7.0]])
        array([0, 1], dtype=int32)
        """
        check_is_fitted(self)
        if is_collection(X):
            return self._map_chunks("predict", X, None, np.dtype(np.int32))
        rows = open_one_pass(self, X) if self._reads_in_one_pass else None
        return self._assign(X)[0] if rows is None else rows.labels()

    @property
    def _reads_in_one_pass(self) -> bool:
        """True if the kernels for new rows may read X: they refuse missing values."""
        return self._has_kernels and missing_policy(self) == "error"

    def _map_chunks(self, method: str, X: Any, width: int | None, dtype: Any = None) -> Any:
        """Call a method on each block of a dask collection; a dask array in the chunks of X."""
        from lloydformer.engines.dask.collections import map_chunks

        model = copy(self)  # a shallow one: the user's keeps its attributes
        for name in LAZY:  # as long as the data that were fitted: not sent to the workers
            model.__dict__.pop(name, None)
        model.callback, model.verbose = None, 0  # may not be serialisable, and would run elsewhere
        if dtype is None:  # dask wants to know it before it computes anything
            single = is_array(X) and X.dtype == np.float32
            dtype = np.float32 if single else np.float64
        return map_chunks(X, getattr(model, method), width, np.dtype(dtype))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of X and return their labels.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            The attribute `labels_`.

        See Also
        --------
        Clusterer.fit : Fit and return the estimator.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMeans(2, init=[[0.0], [9.0]]).fit_predict([[0.0], [1.0], [8.0], [9.0]])
        array([0, 0, 1, 1], dtype=int32)
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def transform(self, X: Any) -> Any:
        """Compute the distance of each row to each center.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.

        Returns
        -------
        ndarray or Tensor of shape (n_samples, n_clusters)
            Euclidean distances; cosine distances in `SphericalKMeans`. A tensor if X is a tensor.

        See Also
        --------
        Clusterer.predict : The nearest center only.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMeans(2, init=[[0.0], [8.0]]).fit([[0.0], [8.0]])
        >>> model.transform([[2.0]])
        array([[2., 6.]])
        """
        check_is_fitted(self)
        if is_collection(X):
            return self._map_chunks("transform", X, self.n_clusters)
        rows = open_one_pass(self, X) if self._reads_in_one_pass else None
        if rows is not None:
            return rows.distances(cosine=self._cosine_distances)
        return self._map_leaves(X, self._all_distances)

    def _all_distances(self, rows: Rows, centers: Tensor, returned: Tensor) -> Tensor:
        """Return the distances (m, k) of rows to all centers."""
        squares = rows.distances_to_all(centers, returned)
        # |x - c|^2 = 2 - 2 cos for rows of length 1
        return squares / 2 if self._cosine_distances else squares.sqrt_()

    @one_core()
    def _map_leaves(self, X: Any, function: Callable[[Rows, Tensor, Tensor], Tensor]) -> Any:
        """Call a function of rows (m, d) and both of `_centers` on each leaf of X."""
        check_is_fitted(self)
        source = self._read(X, reset=False)
        blocks, centers = source.blocks, self._centers(source.blocks.layout)

        def map_leaf(leaf: tuple[int, int]) -> Tensor:
            return function(blocks.read(*leaf), *centers)

        parts = map_on_single_cores(map_leaf, leaf_ranges(blocks.layout), blocks.layout.device)
        return source.to_input_kind(torch.cat(parts))

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Cluster the rows of X and return their distances to the centers.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        ndarray or Tensor of shape (n_samples, n_clusters)
            The distances, as `transform` returns them.

        See Also
        --------
        Clusterer.transform : The same for other rows.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMeans(2, init=[[0.0], [8.0]]).fit_transform([[0.0], [8.0]])
        array([[0., 8.],
               [8., 0.]])
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute minus the inertia of the rows of X with the fitted centers.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        float
            Minus the inertia, so that larger is better.

        See Also
        --------
        Clusterer.fit : Sets `inertia_`, the inertia of the rows it was given.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMeans(2, init=[[0.0], [8.0]]).fit([[0.0], [8.0]])
        >>> model.score([[1.0], [7.0]])
        -2.0
        """
        check_is_fitted(self)
        # The kernels for new rows add up squared distances to the nearest center, nothing else.
        plain = self._plan().has_plain_inertia and missing_policy(self) == "error"
        rows = open_one_pass(self, X, sample_weight) if plain else None
        inertia = None if rows is None else rows.inertia()
        return -(self._assign(X, sample_weight)[1] if inertia is None else inertia)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.input_tags.allow_nan = missing_policy(self) != "error"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _validate_params(self) -> None:
        # scikit-learn's own check takes longer than a small fit: it only words the error.
        if find_invalid_parameter(self) is not None:
            super()._validate_params()

    def check_parameters(self) -> None:
        """Check the parameters without data, as `fit` does before it reads X.

        Raises
        ------
        ValueError
            If a parameter has a type or a value that is not allowed.

        See Also
        --------
        Clusterer.fit : Checks the parameters, then clusters the rows of X.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMeans(3, max_iter=10).check_parameters()
        """
        self._validate_params()

    @property
    def scaling(self) -> Scaling | None:
        """Scaling by `lf.data.open_dataset` of the columns that were fitted; None without.

        See Also
        --------
        Scaler : Scale the columns of an array.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMeans(2).fit([[0.0], [1.0], [5.0]]).scaling is None
        True
        """
        return self._view.scaling

    @property
    def compares_directions(self) -> bool:
        """True if rows are compared by their direction (cosine) instead of their position.

        See Also
        --------
        SphericalKMeans : An estimator that compares directions.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KMeans().compares_directions, lf.SphericalKMeans().compares_directions
        (False, True)
        """
        return self._directions

    @one_core()
    def distances_to_centers(self, X: Any, labels: Any = None) -> Any:
        """Compute the distance of each row to the center of its cluster.

        It needs memory for n_samples numbers, where `transform` needs it for
        n_samples * n_clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        labels : array-like or Tensor of shape (n_samples,), default=None
            The cluster of each row, from 0 to n_clusters - 1. None: the clusters of `predict`.

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            Euclidean distances, in scaled units if the fit scaled the columns; cosine distances
            if `compares_directions`. A tensor if X is a tensor.

        See Also
        --------
        Clusterer.transform : The distances to all centers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KMeans(2, init=[[0.0], [8.0]]).fit([[0.0], [8.0]])
        >>> model.distances_to_centers([[2.0], [7.0]])
        array([2., 1.])
        """
        check_is_fitted(self)
        if is_collection(X) and labels is None:
            return self._map_chunks("distances_to_centers", X, None)
        source = self._read(X, reset=False)
        blocks, centers = source.blocks, self._centers(source.blocks.layout)
        # A second pass over X for the labels: distances to all centers would take n k numbers.
        own = to_tensor(self.predict(X) if labels is None else labels).to(blocks.layout.device)
        parts = [
            self._own_distances(blocks.read(start, stop), *centers, own[start:stop].long())
            for start, stop in leaf_ranges(blocks.layout)
        ]
        return source.to_input_kind(torch.cat(parts))

    def _own_distances(self, rows: Rows, centers: Tensor, returned: Tensor, own: Tensor) -> Tensor:
        """Return the distance of each row to its own center; own: numbers of centers, (m,)."""
        squares = rows.exact_squares(returned, own).to(centers.dtype)
        return squares / 2 if self._directions else squares.sqrt()


def with_typical_tolerance(model: Clusterer) -> Clusterer:
    """Keep a few far rows from enlarging the tolerance of a model; return the model itself.

    It is no parameter, and is not saved: only the command line, which promises no iterations of
    scikit-learn, has it.
    """
    model._typical_tolerance = True
    return model
