"""Any recipe as an estimator: lowered where possible, literal otherwise."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import leaf_ranges
from lloydformer.data.shard import Shard
from lloydformer.engines.thread_pool import callers_cores
from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.checkpoint import refuse_checkpoint
from lloydformer.estimators.parameter_checks import checked_fit
from lloydformer.estimators.source import Source
from lloydformer.numerics.checks import check_zero_sum
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import LoweringError, lower
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.driver import Restarts
from lloydformer.solving.iterations import PlanIterations
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome


class CircuitClusterer(Clusterer):
    """The clustering algorithm of any recipe, as an estimator.

    A recipe that can be lowered runs as folds over blocks of points, in time and memory that grow
    with n. Any other recipe runs as the literal circuit, `max_iter` layers deep, in time and memory
    that grow with n^2. `lowered_` tells which of the two it was.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    recipe : Recipe or None, default=None
        The recipe to run. None is `lf.recipes.lloyd()`. Its weights must be constructed, not free.
        With a norm in the recipe, rows are scaled to length 1.
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

    Attributes
    ----------
    cluster_centers_ : ndarray or Tensor of shape (n_clusters, n_features)
        Centers of the best start, in the units of X. A tensor if X was a tensor.
    labels_ : ndarray or Tensor of shape (n_samples,)
        Cluster of each row; -1 for the points that a trimmed recipe leaves out. A tensor if X was a
        tensor.
    inertia_ : float
        As in the estimator of the recipe: for `recipes.trimmed` that of `TrimmedKMeans`. For a
        recipe without an estimator that of `KMeans`, or of `SphericalKMeans` if it has a norm.
    n_iter_ : int
        Number of iterations of the best start.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the centers at the beginning of each iteration of the best start, then that of
        the returned centers. The objective is that of the estimator of the recipe; in a literal
        circuit that of `KMeans`, except for the last entry.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.
    lowered_ : bool
        True if the recipe ran as folds, False if it ran as the literal circuit.

    See Also
    --------
    Circuit : The literal circuit, with every intermediate.
    lloydformer.recipes.table : The recipes of the paper's table.

    Notes
    -----
    A literal circuit always runs `max_iter` layers: `tol` and `empty` have no effect on it, and it
    accepts no `sample_weight`, no `checkpoint` and no Shard. `callback` is called after all layers
    have run, once for each of them.

    Examples
    --------
    >>> import lloydformer as lf
    >>> X = [[0.0], [1.0], [8.0], [9.0]]
    >>> model = lf.CircuitClusterer(2, recipe=lf.recipes.soft(1.0), random_state=0).fit(X)
    >>> model.lowered_, model.inertia_
    (True, 1.0)
    >>> shared_ties = lf.recipes.lloyd(ties="average")  # cannot be lowered
    >>> lf.CircuitClusterer(2, recipe=shared_ties, max_iter=5, random_state=0).fit(X).lowered_
    False
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "recipe": [None, Recipe],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        recipe: Recipe | Any | None = None,
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
        self.recipe = recipe
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
        return self.recipe or recipes.lloyd()

    @property
    def _directions(self) -> bool:  # type: ignore[override]
        return isinstance(self._recipe().norm, RMSNorm | LayerNorm)

    def _lowering(self) -> tuple[Plan, LoweringError | None]:
        """Return the recipe's plan and None, or the plan that labels as it does, and the reason."""
        # Not cached: parts of a user's recipe need not be hashable. A recipe that only its rule for
        # ties keeps from lowering, as `lloyd(ties="average")`, labels as its "first" variant does.
        recipe = self._recipe()
        try:
            return lower(recipe), None
        except LoweringError as error:
            reason = error
        first = replace(recipe.encoder_cross, activation=LimitingSoftmax("first"))
        try:
            return lower(replace(recipe, encoder_cross=first)), reason
        except LoweringError:
            return MeansPlan(directions=self._directions), reason

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        return self._lowering()[0]

    def _read(self, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
        self._check_shard(X)
        source: Source = super()._read(X, sample_weight, reset=reset)
        if self._needs_zero_sums:  # a leaf at a time bounds temporary memory
            for start, stop in leaf_ranges(source.blocks.layout):
                rows = source.blocks.read(start, stop)
                check_zero_sum("X", rows.take(torch.arange(stop - start)))
        return source

    @property
    def _needs_zero_sums(self) -> bool:
        """True if the norm of the recipe needs rows that sum to zero."""
        norm = self._recipe().norm
        return norm is not None and norm.zero_sum

    def _check_shard(self, X: Any) -> None:
        if self._needs_zero_sums and isinstance(X, Shard):
            raise ValueError(
                f"X: found a Shard; ranks do not run {self._recipe().name}, whose norm needs rows "
                "that sum to zero"
            )

    @checked_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "CircuitClusterer":
        """Cluster the rows of X with the algorithm of the recipe.

        Parameters
        ----------
        X : array-like, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are refused.
        y : object, default=None
            Ignored; present for compatibility with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. None: every row has weight 1. Recipes that cannot be
            lowered accept None only.

        Returns
        -------
        CircuitClusterer
            The fitted estimator itself.

        Raises
        ------
        ValueError
            If the recipe has free weights, or cannot be lowered and `sample_weight` is not None.

        See Also
        --------
        CircuitClusterer.predict : Assign rows to the fitted centers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> recipe = lf.recipes.trimmed(keep=0.75)
        >>> model = lf.CircuitClusterer(1, recipe=recipe, init=[[1.0]])
        >>> model.fit([[0.0], [1.0], [2.0], [90.0]]).labels_
        array([ 0,  0,  0, -1], dtype=int32)
        """
        if self._recipe().free:
            raise ValueError(
                f"recipe: {self._recipe().name} leaves its weights free, and here they would be "
                "untrained; use LearnedKMeans, which has trained ones"
            )
        # The folds know weights, ranks and checkpoints; the circuit has all points as equal tokens.
        reason = self._lowering()[1]
        if reason is not None:
            if sample_weight is not None:
                raise ValueError(f"sample_weight: literal circuits do not support it; {reason}")
            if isinstance(X, Shard):
                raise ValueError(f"X: found a Shard; ranks run folds, and {reason}")
            refuse_checkpoint(self, f"literal circuits do not support it; {reason}")
        self._check_shard(X)
        super().fit(X, sample_weight=sample_weight)
        self.lowered_ = reason is None
        return self

    def _prepare(self, opened: Preparation) -> Prepared:
        plan, reason = self._lowering()
        session, rng = opened.session, opened.rng
        restarts = Restarts(opened.initial.n_restarts, opened.initial.generate(session))
        if reason is None:
            return plan.with_seed(int(rng.randint(2**31 - 1))), restarts, PlanIterations()
        # Self-attention takes memory for n^2 numbers, so all rows at once are no further limit.
        layout = session.layout
        points = session.gather(torch.arange(layout.n_rows, device=layout.device))
        circuit = Circuit(self._recipe(), layout.n_features, int(self.n_clusters))
        return plan, restarts, LiteralCircuit(circuit, points, rng)


@dataclass(frozen=True)
class LiteralCircuit:
    """The algorithm of a recipe that does not lower: all layers of its circuit, on all points."""

    circuit: Circuit
    points: Tensor
    rng: np.random.RandomState
    n_starts: ClassVar[int] = 1

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield LiteralRun(self, fit, centers, int(self.rng.randint(2**31 - 1)))


class LiteralRun:
    """All layers of a circuit in one call, from one start."""

    silent: ClassVar[bool] = False
    depends_on_session: ClassVar[bool] = False

    def __init__(self, how: LiteralCircuit, fit: FitContext, centers: Tensor, seed: int) -> None:
        self.how, self.fit, self.centers, self.seed = how, fit, centers, seed
        self.done = self.can_finish = False  # no centers before the layers have run

    def advance(self, recorder: HistoryRecorder) -> None:
        points, centers = self.how.points, self.centers.to(self.how.points.dtype)
        with callers_cores():  # its n x n attention takes all the time of the fit
            trace = self.how.circuit(points, centers, self.fit.rules.max_iter, seed=self.seed)
        # One objective more than shifts: that of the last centers, which `finish` computes as the
        # estimator of the recipe does.
        shifts = trace.centers.diff(dim=0).square().sum(dim=(1, 2)).tolist()
        objectives, layers = trace.objective.tolist()[:-1], trace.centers[1:].double()
        for centers, objective, shift in zip(layers, objectives, shifts, strict=True):
            # Layer by layer: if the callback raises Ctrl-C, centers and history end at its layer.
            self.centers, self.can_finish = centers, True
            recorder.record(objective, shift)
        self.done = True

    def finish(self, history: list[float]) -> Outcome:
        """Label the points as the estimator of the recipe does."""
        self.fit.session.forget()  # what seeding has left in the state of the points
        return self.fit.finish_at(self.centers, history)

    def state(self) -> None:
        """None: estimators refuse checkpoints of literal circuits."""

    def restore(self, state: Any) -> None:
        raise ValueError("literal circuits have no checkpoints")
