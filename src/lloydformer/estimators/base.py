"""What every estimator does; one of them only names its recipe and its attributes."""

import warnings
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import Blocks, count_weighted, ranges
from lloydformer.engines import ENGINES, choose
from lloydformer.engines.contract import State
from lloydformer.estimators.saved import Saved
from lloydformer.estimators.source import Source, View, read
from lloydformer.estimators.starts import Starts
from lloydformer.estimators.warm import warmed
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import lower
from lloydformer.plans.trimmed import untrim_
from lloydformer.solving.loop import Course, Interrupted, Progress, Result, Rules, solve

_PART = 1 << 18
"""Labels that are looked at together, where all of them would take more memory than a fit."""


_lowered = lru_cache(maxsize=64)(lower)
"""Recipes are values: equal ones come to the same plan."""


class Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Saved):
    """A clustering algorithm as a scikit-learn estimator.

    A constructor stores whatever it is given, hence `| Any` in its types; `fit` checks it.
    """

    _accepts_sparse: ClassVar[bool] = False
    _directions: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [
            StrOptions({"k-means++", "k-means||", "random"}),
            callable,
            "array-like",
            "sparse matrix",
            Tensor,
        ],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "empty": [StrOptions({"farthest", "keep", "error"})],
        "engine": [StrOptions({"auto", *ENGINES})],
        "device": [None, str, torch.device],
        "callback": [None, callable],
        "warm_start": ["boolean"],
    }

    def _recipe(self) -> Recipe:
        """The recipe that this estimator runs, with its parameters."""
        raise NotImplementedError

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        """The recipe, lowered; a plan that draws takes its seed from `random_state`."""
        plan = _lowered(self._recipe())
        return plan if rng is None else plan.seeded(int(rng.randint(2**31 - 1)))

    def _rules(self) -> Rules:
        return Rules(int(self.max_iter), float(self.tol), self.empty)

    def _course(self, blocks: Blocks) -> Course | None:
        """What is run from each start, where it is not the plan alone."""
        return None

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "Clusterer":
        """Cluster the rows of X.

        X: array, frame, or tensor (n, d); the fitted attributes of tensors are tensors on the
        same device. sample_weight: a point with weight 2 counts twice, one with weight 0 not at
        all.
        """
        source = self._read(X, sample_weight, reset=True)
        self._check_size(source.blocks)
        rng = check_random_state(self.random_state)
        starts = Starts(warmed(self), X, source.blocks, rng)
        self._n_init = starts.n_starts
        try:
            result = solve(
                self._plan(rng),
                source.blocks,
                starts,
                self._rules(),
                choose(self.engine),
                self._report(),
                self._course(source.blocks),
            )
        except Interrupted as stop:
            if stop.result is not None:
                self._keep(stop.result, source)
            raise
        self._keep(result, source)
        return self

    def _keep(self, result: Result, source: Source) -> None:
        """The fitted attributes."""
        blocks = source.blocks
        self._view = View(blocks.origin, getattr(blocks, "scaling", None))
        self.cluster_centers_ = source.out(blocks.returned(result.centers))
        self._warn_if_fewer(result.labels)
        labels = result.labels  # not copied
        self.labels_ = source.out(labels.clamp_(min=-1) if labels.amin() < -1 else labels)
        self.inertia_ = result.inertia
        self.n_iter_ = result.n_iter
        self.objective_history_ = np.array(result.history)
        self._n_features_out = self.n_clusters

    def _warn_if_fewer(self, labels: Tensor) -> None:
        k = self.n_clusters
        seen = np.zeros(2 * k, dtype=bool)  # trimmed points have -1 - label: counted from the end
        for part in torch.split(labels, _PART):
            seen[part.cpu().numpy()] = True
        found = int((seen[:k] | seen[: -k - 1 : -1]).sum())
        if found < self.n_clusters:
            warnings.warn(
                f"Number of distinct clusters ({found}) found smaller than n_clusters "
                f"({self.n_clusters}). Possibly due to duplicate points in X.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _read(self, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
        view = None if reset else self._view
        source = read(self, X, sample_weight, reset=reset, directions=self._directions, view=view)
        if not self._directions:
            return source
        return source.without_zero_rows(getattr(self, "zero_rows", "error"))

    def _check_size(self, blocks: Blocks) -> None:
        count = count_weighted(blocks)
        if count < self.n_clusters:
            raise ValueError(
                f"n_samples={count} should be >= n_clusters={self.n_clusters}."
                + (" Rows of weight 0 do not count." if count < blocks.n_rows else "")
            )

    def _report(self) -> Any:
        """The user's callback, and with `verbose` a line for each iteration."""
        if not self.verbose:
            return self.callback

        def say(progress: Progress) -> None:
            print(f"Iteration {progress.iteration}, objective {progress.objective}.")
            if self.callback is not None:
                self.callback(progress)

        return say

    def _centers(self, blocks: Blocks) -> Tensor:
        """The fitted centers as the loop saw them: from the origin, in the data's precision.

        They are laid out anew: last bits of a product depend on how its factors lie in memory.
        """
        placed = blocks.place(torch.as_tensor(self.cluster_centers_)).to(blocks.dtype)
        return placed.clone(memory_format=torch.contiguous_format)

    def _finish(self, X: Any, sample_weight: Any = None) -> tuple[Source, State, float]:
        """The last assignment of a fit, for other data."""
        check_is_fitted(self)
        source = self._read(X, sample_weight, reset=False)
        state = State.of(source.blocks)
        state.clear()
        with choose(self.engine).over(source.blocks, state) as run:
            final = self._plan().finish(run, self._centers(source.blocks))
        return source, state, final.inertia

    def predict(self, X: Any) -> Any:
        """The nearest center of each row."""
        source, state, _ = self._finish(X)
        return source.out(untrim_(state.labels))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit(X).labels_`."""
        return self.fit(X, sample_weight=sample_weight).labels_

    def transform(self, X: Any) -> Any:
        """The distance of each row to each center, (n, k)."""
        check_is_fitted(self)
        source = self._read(X, reset=False)
        blocks, centers = source.blocks, self._centers(source.blocks)
        parts = []
        for start in range(0, blocks.n_rows, blocks.leaf):
            rows = blocks.read(start, min(start + blocks.leaf, blocks.n_rows))
            squares = rows.scores(centers) + rows.squared_norms()[:, None]
            parts.append(self._distance(squares.clamp_(min=0)))
        return source.out(torch.cat(parts))

    def _distance(self, squares: Tensor) -> Tensor:
        return squares.sqrt_()

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """`fit(X).transform(X)`."""
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the inertia of these data."""
        return -self._finish(X, sample_weight)[2]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

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
    def compares_directions(self) -> bool:
        """Whether rows are compared by their direction (cosine) instead of their position.

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

    def distances_to_centers(self, X: Any, labels: Any = None) -> Any:
        """Compute the distance of each row to the center of its cluster.

        It needs memory for n_samples numbers, where `transform` needs it for
        n_samples * n_clusters.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open` returns. Sparse matrices are accepted by `KMeans`,
            `SphericalKMeans`, `RelocatingKMeans` and `LearnedKMeans`.
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
        source = self._read(X, reset=False)
        blocks, centers = source.blocks, self._centers(source.blocks)
        own = torch.as_tensor(self.predict(X) if labels is None else labels).to(centers.device)
        parts = [
            blocks.read(start, stop).squared_distances(centers, own[start:stop].long())
            for start, stop in ranges(blocks)
        ]
        squares = torch.cat(parts)
        return source.out(squares / 2 if self._directions else squares.sqrt())
