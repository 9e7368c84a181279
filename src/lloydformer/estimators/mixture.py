"""Mixtures of Gaussian components, and the base of all mixtures."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.base import DensityMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.array_api import to_tensor
from lloydformer.data.blocks import TensorBlocks, leaf_ranges
from lloydformer.data.column_statistics import Scaling
from lloydformer.data.layout import Layout
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.engines import choose
from lloydformer.engines.dask.chunks import is_array, is_collection
from lloydformer.engines.partitioned import PartitionedBlocks
from lloydformer.engines.thread_pool import callers_cores, map_on_single_cores, one_core
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.checkpoint import open_search_checkpoint
from lloydformer.estimators.parameter_checks import (
    Interval,
    StrOptions,
    WholeNumbers,
    checked_fit,
    find_invalid_parameter,
)
from lloydformer.estimators.presentation import Presented
from lloydformer.estimators.saved import LAZY, Saved
from lloydformer.estimators.source import Source, View, read
from lloydformer.plans.lower import lower
from lloydformer.plans.mixture import (
    LOG_TINY,
    Components,
    MixtureLabels,
    MixturePlan,
    MixtureRows,
)
from lloydformer.solving.mixture_search import PATIENCE, STARTS
from lloydformer.solving.mixtures import MixtureFit, MixtureOutcome, MixtureSearch, draw_start
from lloydformer.solving.run import Progress
from lloydformer.user_warnings import warn_user

# A component whose responsibilities sum to fewer rows than this has no points. Chosen by hand: far
# below any row, and far above what rounding leaves.
NO_POINTS = 1e-6


class MixtureModel(Presented, DensityMixin, Saved):
    """Base class of the mixtures.

    See Also
    --------
    GaussianMixture : A mixture of Gaussian components.

    Examples
    --------
    >>> import lloydformer as lf
    >>> hasattr(lf.GaussianMixture, "fit_predict")
    True
    """

    _directions: ClassVar[bool] = False
    _sparse_on_gpu: ClassVar[bool] = False
    _family: ClassVar[str] = "gaussian"
    _required: ClassVar[frozenset[str]] = frozenset(
        {"weights_", "means_", "converged_", "n_iter_", "lower_bound_", "n_features_in_"}
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "init_params": [StrOptions({"kmeans", "random", "random_from_data", "k-means++"})],
        "weights_init": ["array-like", None],
        "means_init": ["array-like", Tensor, None],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "verbose_interval": [Interval(Integral, 1, None, closed="left")],
        "engine": [str],
        "device": [None, str, torch.device],
        "checkpoint": [None, str, PathLike],
        "callback": [None, callable],
    }

    # Set by the constructors.
    n_components: int | Any
    init_params: str | Any
    weights_init: Any
    means_init: Any
    tol: float | Any
    max_iter: int | Any
    n_init: int | Any
    random_state: Any
    warm_start: bool | Any
    verbose: int | Any
    verbose_interval: int | Any
    engine: str | Any
    device: Any
    checkpoint: Any
    callback: Any

    @property
    def cluster_centers_(self) -> Any:
        """The means, under the name that clusterers have for them.

        See Also
        --------
        KMeans : Has an attribute of this name.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.GaussianMixture().fit([[0.0], [2.0]]).cluster_centers_
        array([[1.]])
        """
        return self.means_

    @property
    def inertia_(self) -> float:
        """Minus `lower_bound_`: what a fit minimises, under the name that clusterers have for it.

        See Also
        --------
        KMeans : Has an attribute of this name.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.GaussianMixture().fit([[-1.0], [1.0]])
        >>> model.inertia_ == -model.lower_bound_
        True
        """
        return -self.lower_bound_

    @property
    def objective_history_(self) -> np.ndarray:
        """Minus `lower_bounds_`, under the name that clusterers have for it.

        See Also
        --------
        KMeans : Has an attribute of this name.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.GaussianMixture().fit([[-1.0], [1.0]])
        >>> len(model.objective_history_) == model.n_iter_
        True
        """
        return -np.asarray(self.lower_bounds_)

    @property
    def compares_directions(self) -> bool:
        """False: rows are compared by their position.

        See Also
        --------
        SphericalKMeans : An estimator that compares directions.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.GaussianMixture().compares_directions
        False
        """
        return self._directions

    @property
    def scaling(self) -> Scaling | None:
        """Scaling by `lf.data.open_dataset` of the columns that were fitted; None without.

        See Also
        --------
        Scaler : Scale the columns of an array.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.GaussianMixture().fit([[0.0], [1.0]]).scaling is None
        True
        """
        return self._view.scaling

    @property
    def _accepts_sparse(self) -> bool:
        return True

    @property
    def _search(self) -> tuple[int, int]:
        """Starts of a race, and relocations in a row without gain after which a fit ends."""
        return 1, 0

    def _recipe(self) -> Recipe:
        """Return the recipe that this estimator runs."""
        return recipes.mixture(family=self._family)  # type: ignore[arg-type]

    def _plan(self) -> MixturePlan:
        plan = lower(self._recipe())
        assert isinstance(plan, MixturePlan)
        return plan

    def _read(self, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
        """Return the rows as blocks; of other families than Gaussian with the origin 0."""
        if isinstance(X, Shard):
            raise ValueError("X: found a shard of ranks; mixtures are fitted in one process")
        source = read(self, X, sample_weight, reset=reset)
        if self._family == "gaussian":
            return source
        blocks = source.blocks
        if isinstance(blocks, TensorBlocks) and blocks.scaling is None:
            # x log p is no function of x - origin
            zero = torch.zeros(blocks.n_features, dtype=blocks.dtype, device=blocks.device)
            blocks = replace(blocks, given_origin=zero)
        elif not isinstance(blocks, SparseBlocks):
            raise ValueError(
                f"X: found {type(X).__name__}; {type(self).__name__} takes arrays, frames, tensors "
                "and sparse matrices without scaled columns"
            )
        self._check_values(blocks.ends)
        return replace(source, blocks=blocks)

    def _check_values(self, ends: Tensor) -> None:
        """Raise `ValueError` for values that the family does not have; ends: (2, d)."""

    @checked_fit
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "MixtureModel":
        """Estimate the parameters by EM.

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
        MixtureModel
            The fitted estimator itself. Its array attributes are tensors on the device of X if X is
            a tensor, otherwise NumPy arrays; in float64.

        Raises
        ------
        ValueError
            If X or a parameter is unsuitable, or a covariance matrix is not positive definite: a
            larger `reg_covar` helps.
        KeyboardInterrupt
            On Ctrl-C, after the best parameters so far were stored.

        See Also
        --------
        MixtureModel.fit_predict : Fit and return the labels.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.GaussianMixture().fit([[0.0], [2.0]]).means_
        array([[1.]])
        """
        source = self._read(X, sample_weight, reset=True)
        blocks, k = source.blocks, int(self.n_components)
        layout = blocks.layout
        if layout.n_rows < k:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {k}, "
                f"n_samples = {layout.n_rows}"
            )
        given = self._given_start(layout)
        rng = source.generator(self.random_state)
        continued = bool(self.warm_start) and hasattr(self, "converged_")
        with choose(self.engine, blocks).open(blocks) as session:
            plan = self._plan()
            totals, limits = plan.measure(session), (int(self.max_iter), float(self.tol))
            racing, patience = (1, 0) if continued else self._search
            fit = MixtureFit(
                plan, session, totals, *limits, self._progress(), patience, race=racing > 1
            )
            n_starts = racing if racing > 1 else int(self.n_init)
            draw, bound = partial(self._draw_start, fit, given, rng), -math.inf
            if continued:
                draw, n_starts = partial(self._components, layout), 1
                bound = self.lower_bound_
            with open_search_checkpoint(self, session) as (state, save):
                search = MixtureSearch(fit, draw, n_starts, rng, bound, state, save)
                outcome, stop = search.solve()
                if outcome is None:  # Ctrl-C came before the first start was made
                    assert stop is not None
                    raise stop
                self._store(outcome, source)
                # labels by the parameters that users get, for which `predict` gives the same
                session.fold(MixtureLabels(self._components(layout)))
                self.labels_ = source.to_input_kind(session.labels())
                if stop is not None:
                    raise stop  # inside of the block, so that the checkpoint stays
        self._warn(totals.weight.item() * layout.weight_unit)
        return self

    def _progress(self) -> Callable[[Progress], None] | None:
        """Return the callback, which also prints a line now and then if `verbose` is set."""
        if not self.verbose:
            return None if self.callback is None else callers_cores()(self.callback)
        every = int(self.verbose_interval)

        @callers_cores()
        def show(progress: Progress) -> None:
            if progress.iteration == 0:
                print(f"Initialization {progress.start}")
            if (progress.iteration + 1) % every == 0:
                bound = -progress.objective
                print(f"  Iteration {progress.iteration + 1}, lower bound {bound:.8g}")
            if self.callback is not None:
                self.callback(progress)

        return show

    def _draw_start(
        self, fit: MixtureFit, given: dict[str, Tensor], rng: np.random.RandomState
    ) -> Components:
        """Return the components of a start: those given, the others by `init_params`."""
        kind, found = fit.plan.kind, dict[str, Tensor]()
        needed = {"weights", "means"} | ({"covariances"} if kind.is_estimated else set())
        if given.keys() != needed:
            drawn = draw_start(fit, int(self.n_components), str(self.init_params), rng)
            found = {
                "weights": drawn.log_weights.exp(),
                "means": drawn.means,
                "covariances": drawn.covariances,
            }
        found |= given
        log_weights = found["weights"].log().clamp(min=LOG_TINY)
        return Components.create(kind, log_weights, found["means"], found.get("covariances"))

    def _given_start(self, layout: Layout) -> dict[str, Tensor]:
        """Return the parameters of the start that the user gave, relative to the origin."""
        k, d, found = int(self.n_components), layout.n_features, dict[str, Tensor]()
        if self.weights_init is not None:
            weights = check_array(self.weights_init, dtype=np.float64, ensure_2d=False)
            check_shape("weights", weights, (k,))
            if (weights < 0).any() or (weights > 1).any():
                raise ValueError(
                    "weights_init: The parameter 'weights' should be in the range [0, 1], but got "
                    f"max value {weights.max():.5f}, min value {weights.min():.5f}"
                )
            if abs(weights.sum() - 1) > 1e-6:
                raise ValueError(
                    "weights_init: The parameter 'weights' should be normalized, but got "
                    f"sum(weights) = {weights.sum():.5f}"
                )
            found["weights"] = torch.from_numpy(weights).to(layout.device)
        if self.means_init is not None:
            given = self.means_init
            given = given.detach().cpu().numpy() if isinstance(given, Tensor) else given
            means = check_array(given, dtype=np.float64, ensure_2d=False)
            check_shape("means", means, (k, d))
            found["means"] = layout.to_row_units(torch.from_numpy(means))
        return found

    def _components(self, layout: Layout) -> Components:
        """Return the fitted parameters in the coordinates of rows of this layout."""
        kind, device = self._plan().kind, layout.device
        weights = to_tensor(self.weights_).to(device).double()
        covariances = None
        if kind.is_estimated:
            covariances = to_tensor(self.covariances_).to(device).double()
        means = layout.to_row_units(to_tensor(self.means_))
        log_weights = weights.log().clamp(min=LOG_TINY)
        return Components.create(kind, log_weights, means.contiguous(), covariances)

    def _store(self, outcome: MixtureOutcome, source: Source) -> None:
        """Set the fitted attributes but the labels."""
        layout, found = source.blocks.layout, outcome.components
        self._view = View(layout.origin, layout.scaling)
        means = found.means + layout.origin
        if layout.scaling is not None:
            means = layout.scaling.to_data(means)
        self.weights_ = source.to_input_kind(found.log_weights.exp())
        self.means_ = source.to_input_kind(means)
        self.converged_ = outcome.converged
        self.n_iter_ = len(outcome.bounds)
        self.lower_bound_ = outcome.bound
        self.lower_bounds_ = np.array(outcome.bounds)

    def _warn(self, weight: float) -> None:
        """Warn of a fit that did not converge, and of components without points."""
        if not self.converged_ and self.max_iter > 0:
            warn_user(
                "Best performing initialization did not converge. Try different init parameters, "
                "or increase max_iter, tol, or check for degenerate data.",
                ConvergenceWarning,
            )
        masses = weight * to_tensor(self.weights_)
        lost = (masses < NO_POINTS).nonzero()[:, 0].tolist()
        if lost:
            warn_user(
                f"Components {lost} have no points: their responsibilities sum to less than "
                f"{NO_POINTS:g} rows. Fit fewer components, or pass another start.",
                ConvergenceWarning,
            )

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Estimate the parameters and return the most probable component of each row.

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
        MixtureModel.fit : Fit and return the estimator.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.GaussianMixture(random_state=0).fit_predict([[0.0], [2.0]])
        array([0, 0], dtype=int32)
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Any:
        """Return the most probable component of each row.

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
            Numbers of components; on ties the lower one.

        See Also
        --------
        MixtureModel.predict_proba : The probabilities of all components.

        Examples
        --------
        >>> import numpy as np, lloydformer as lf
        >>> X = np.array([[0.0], [1.0], [9.0], [10.0]])
        >>> model = lf.GaussianMixture(2, means_init=[[0.0], [9.0]]).fit(X)
        >>> model.predict([[2.0], [8.0]])
        array([0, 1], dtype=int32)
        """
        if is_collection(X):
            return self._map_chunks("predict", X, None, np.dtype(np.int32))
        return self._map_rows(X, "labels")

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each component, given the row.

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
        ndarray or Tensor of shape (n_samples, n_components)
            The responsibilities, in the precision of X. Each row sums to 1.

        See Also
        --------
        MixtureModel.predict : The most probable component.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.GaussianMixture().fit([[0.0], [2.0]])
        >>> model.predict_proba([[7.0]])
        array([[1.]])
        """
        if is_collection(X):
            return self._map_chunks("predict_proba", X, int(self.n_components))
        return self._map_rows(X, "shares")

    def score_samples(self, X: Any) -> Any:
        """Return the log-likelihood of each row.

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
            The logarithms of the densities (of the probabilities, for counts), in the precision of
            X.

        See Also
        --------
        MixtureModel.score : Their mean.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.GaussianMixture().fit([[-1.0], [1.0]])
        >>> model.score_samples([[0.0]]).round(4)  # -log(2 pi) / 2
        array([-0.9189])
        """
        if is_collection(X):
            return self._map_chunks("score_samples", X, None)
        return self._map_rows(X, "likelihoods")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of a row.

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
            The mean; larger is better.

        See Also
        --------
        MixtureModel.bic : It less a penalty for the number of parameters.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.GaussianMixture().fit([[-1.0], [1.0]])
        >>> round(model.score([[-1.0], [1.0]]), 4)  # -(1 + log(2 pi)) / 2
        -1.4189
        """
        return self._total_likelihood(X, sample_weight)[0]

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Return the Bayesian information criterion of X: lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        float
            -2 log-likelihood + log(n) times the number of free parameters.

        See Also
        --------
        MixtureModel.aic : The same with another penalty.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[-1.0], [1.0]]
        >>> round(lf.GaussianMixture().fit(X).bic(X), 4)
        7.062
        """
        mean, weight = self._total_likelihood(X, sample_weight)
        return -2 * mean * weight + self._n_parameters() * math.log(weight)

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Return Akaike's information criterion of X: lower is better.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. A row with weight 2 counts twice, a row with weight 0
            does not count. None: every row has weight 1.

        Returns
        -------
        float
            -2 log-likelihood + 2 times the number of free parameters.

        See Also
        --------
        MixtureModel.bic : The same with another penalty.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X = [[-1.0], [1.0]]
        >>> round(lf.GaussianMixture().fit(X).aic(X), 4)
        9.6758
        """
        mean, weight = self._total_likelihood(X, sample_weight)
        return -2 * mean * weight + 2 * self._n_parameters()

    @one_core()
    def distances_to_centers(self, X: Any, labels: Any = None) -> Any:
        """Compute the Euclidean distance of each row to the mean of its component.

        Parameters
        ----------
        X : array-like, sparse matrix, Tensor or Blocks of shape (n_samples, n_features)
            The points, one per row: an array, a data frame, a tensor in float32 or float64, or
            what `lf.data.open_dataset` returns. Sparse matrices are accepted by `KMeans`,
            `SoftKMeans`, `SphericalKMeans`, `RelocatingKMeans`, `LearnedKMeans` and mixtures
            without full or tied covariances; CSR is read in place, other formats are converted to a
            copy in CSR.
        labels : array-like or Tensor of shape (n_samples,), default=None
            The component of each row. None: those of `predict`.

        Returns
        -------
        ndarray or Tensor of shape (n_samples,)
            The distances, in scaled units if the fit scaled the columns.

        See Also
        --------
        MixtureModel.score_samples : The log-likelihood, which knows the covariances.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.GaussianMixture().fit([[0.0], [2.0]]).distances_to_centers([[4.0]])
        array([3.])
        """
        check_is_fitted(self)
        source = self._read(X, reset=False)
        blocks = source.blocks
        assert not isinstance(blocks, PartitionedBlocks)
        layout = blocks.layout
        own = to_tensor(self.predict(X) if labels is None else labels).to(layout.device)
        means = layout.to_exact_units(to_tensor(self.means_)).contiguous()
        parts = [
            blocks.read(*leaf).exact_squares(means, own[slice(*leaf)].long()).sqrt()
            for leaf in leaf_ranges(layout)
        ]
        return source.to_input_kind(torch.cat(parts).to(layout.dtype))

    def sample(self, n_samples: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows, component by component.
        y : ndarray of shape (n_samples,)
            The component of each row.

        Raises
        ------
        ValueError
            If `n_samples` is below 1.

        See Also
        --------
        MixtureModel.score_samples : The log-likelihood of given rows.

        Examples
        --------
        >>> import lloydformer as lf
        >>> X, y = lf.GaussianMixture(random_state=0).fit([[-1.0], [1.0]]).sample(5)
        >>> X.shape, y.tolist()
        ((5, 1), [0, 0, 0, 0, 0])
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(
                f"Invalid value for 'n_samples': {n_samples} . The sampling requires at least one "
                "sample."
            )
        rng = check_random_state(self.random_state)
        weights = to_tensor(self.weights_).cpu().double().numpy()
        counts = rng.multinomial(n_samples, weights / weights.sum())
        means = to_tensor(self.means_).cpu().numpy()
        drawn = [self._draw(rng, j, mean, int(counts[j])) for j, mean in enumerate(means)]
        return np.concatenate(drawn), np.repeat(np.arange(len(counts)), counts)

    def _draw(self, rng: np.random.RandomState, j: int, mean: np.ndarray, n: int) -> np.ndarray:
        """Return n rows of a component."""
        raise NotImplementedError

    def _n_parameters(self) -> int:
        """Return the number of free parameters."""
        k, d = int(self.n_components), int(self.n_features_in_)
        return k * d + k - 1

    @one_core()
    def _total_likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Return the mean log-likelihood of a row, and the sum of the weights."""
        check_is_fitted(self)
        source = self._read(X, sample_weight, reset=False)
        blocks = source.blocks
        with choose(self.engine, blocks).open(blocks) as session:
            totals = self._plan().measure(session)
            (likelihood,) = session.fold(MixtureLabels(self._components(blocks.layout)))
            mean = (likelihood - totals.log_factorials) / totals.weight
            return mean.item(), totals.weight.item() * blocks.layout.weight_unit

    @one_core()
    def _map_rows(self, X: Any, asked: Literal["shares", "likelihoods", "labels"]) -> Any:
        """Return something of each row: by one call of a kernel, or part by part."""
        check_is_fitted(self)
        source = self._read(X, reset=False)
        blocks = source.blocks
        assert not isinstance(blocks, PartitionedBlocks)
        layout = blocks.layout
        task = MixtureRows(self._components(layout), asked)
        with choose(self.engine, blocks).open(blocks) as session:
            found = session.run(task)
        if found is None:
            dtype = torch.int32 if asked == "labels" else layout.dtype

            def map_leaf(leaf: tuple[int, int]) -> Tensor:
                parts = (
                    task.compute(blocks.read(first, min(first + layout.part, leaf[1])))
                    for first in range(*leaf, layout.part)
                )
                return torch.cat([part.to(dtype) for part in parts])

            found = torch.cat(map_on_single_cores(map_leaf, leaf_ranges(layout), layout.device))
        return source.to_input_kind(found)

    def _map_chunks(self, method: str, X: Any, width: int | None, dtype: Any = None) -> Any:
        """Call a method on each block of a dask collection; a dask array in the chunks of X."""
        from lloydformer.engines.dask.collections import map_chunks

        check_is_fitted(self)
        model = copy(self)
        for name in LAZY:  # as long as the data that were fitted: not sent to the workers
            model.__dict__.pop(name, None)
        model.callback, model.verbose = None, 0
        if dtype is None:
            dtype = np.float32 if is_array(X) and X.dtype == np.float32 else np.float64
        return map_chunks(X, getattr(model, method), width, np.dtype(dtype))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags

    def _validate_params(self) -> None:
        # scikit-learn's own check takes longer than a small fit: it only words the error.
        if find_invalid_parameter(self) is not None:
            super()._validate_params()


# Fitted models that commands, reports and descriptions show.
AnyClusterer = Clusterer | MixtureModel


def check_shape(
    name: str, values: np.ndarray, shape: tuple[int, ...], called: str | None = None
) -> None:
    """Raise `ValueError`, in scikit-learn's words, unless values have this shape.

    called: the name of the values in these words, if it is another.
    """
    if values.shape != shape:
        raise ValueError(
            f"{name}_init: The parameter '{called or name}' should have the shape of {shape}, but "
            f"got {values.shape}"
        )


def covariance_shape(covariance_type: str, k: int, d: int) -> tuple[int, ...]:
    """Return the shape of the covariances of k components with d columns."""
    shapes = {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}
    return shapes[covariance_type]


class GaussianMixture(MixtureModel):
    r"""Gaussian mixture, fitted by EM; a drop-in for scikit-learn's, with sample weights.

    The density is $p(x) = \sum_j \pi_j \mathcal N(x; m_j, S_j)$. An iteration computes the
    responsibilities $r_{ij} = \pi_j \mathcal N(x_i; m_j, S_j) / p(x_i)$ and takes weights, means
    and covariances of the rows by them: one layer of `lf.recipes.mixture`. Rows are read in blocks;
    nothing of size n_samples * n_components is stored.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, k.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        Covariance matrices: one of its own for each component, one for all components, diagonal
        ones, or a single variance for each component.
    tol : float, default=1e-3
        A start ends when the mean log-likelihood changes by less than this in an iteration.
    reg_covar : float, default=1e-6
        Added to the variances, in squared units of X, so that covariance matrices are positive
        definite. A warning names it where it decides.
    max_iter : int, default=100
        Maximum number of iterations of one start.
    n_init : int, default=1
        Number of starts. The parameters with the largest `lower_bound_` are kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        Start: statistics of the clusters of k-means; seeds of k-means++ as means; random
        responsibilities; random rows as means.
    weights_init : array-like of shape (n_components,), default=None
        Weights of the start. None: by `init_params`.
    means_init : array-like of shape (n_components, n_features), default=None
        Means of the start. None: by `init_params`.
    precisions_init : array-like, default=None
        Inverse covariances of the start, in the shape of `precisions_`. None: by `init_params`.
    effort : {"low", "medium", "high", "best"} or int, default="low"
        Search for a better optimum. "low" runs the starts, as scikit-learn. Otherwise rounds
        follow: each splits all components, lets EM sort the halves out, merges the pairs that cost
        least until there are k again, and runs EM; it is kept if the likelihood rises. The search
        ends after 2 ("medium"), 4 ("high") or 10 ("best") rounds in a row without gain, or after
        this number. If `n_init` is 1 and no parameter of the start is passed, six starts come
        before: they run for 20 iterations, then the best two and the first to their ends.
        `lower_bound_` is never below that of "low".
    random_state : int, RandomState instance or None, default=None
        Seed of every random number that the fit uses. With an int, repeated fits on the same
        device are bit-identical, for any number of threads.
    warm_start : bool, default=False
        If True and the estimator is fitted, `fit` begins at its parameters.
    verbose : int, default=0
        If not 0, print a line for each start and every `verbose_interval` iterations.
    verbose_interval : int, default=10
        Iterations between two lines.
    engine : {"auto", "native", "chunked", "cuda"}, default="auto"
        Implementation that runs the computation. "native" is compiled C++ for the CPU, "cuda" has
        kernels for NVIDIA GPUs (arrays are copied to one), "chunked" is PyTorch for any device.
        "auto" chooses the fastest one for the device that X is on.
    device : str, torch.device or None, default=None
        Device that does the work, for instance "cuda". Arrays are copied to it, and results are
        copied back. None uses the CPU for arrays and the device of X for tensors.
    checkpoint : str, PathLike or None, default=None
        File that `fit` writes every few iterations and removes at its end. If it exists when a fit
        begins, the fit resumes from it; the result is bit-identical to an uninterrupted fit. For
        dense rows on the CPU, in one process, on a Dask cluster or on ranks. After resuming, some
        iterations may be passed to `callback` twice.
    callback : callable or None, default=None
        Called after each iteration with a `Progress`: `objective` is minus the lower bound, `shift`
        the squared distance that the means moved. If it raises `KeyboardInterrupt`, the fit ends
        and keeps the best parameters so far.

    Attributes
    ----------
    weights_ : ndarray or Tensor of shape (n_components,)
        Weights of the components; they sum to 1.
    means_ : ndarray or Tensor of shape (n_components, n_features)
        Means, in the units of X.
    covariances_ : ndarray or Tensor
        Covariances: (n_components, n_features, n_features) for "full", (n_features, n_features) for
        "tied", (n_components, n_features) for "diag", (n_components,) for "spherical". In scaled
        units if `lf.data.open_dataset` scaled the columns.
    precisions_ : ndarray or Tensor
        Inverses of the covariances, in the same shape.
    precisions_cholesky_ : ndarray or Tensor
        Upper triangular matrices U with U U^T the precision, in the same shape.
    converged_ : bool
        Whether `tol` was reached.
    n_iter_ : int
        Number of iterations of the best start.
    lower_bound_ : float
        Mean log-likelihood of a row before the last iteration of the best start.
    lower_bounds_ : ndarray of shape (n_iter_,)
        The same for each iteration.
    labels_ : ndarray or Tensor of shape (n_samples,)
        Most probable component of each row.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.

    See Also
    --------
    SoftKMeans : Equal round components of a fixed size.
    BernoulliMixture : Columns of 0 and 1.
    PoissonMixture : Columns of counts.

    Notes
    -----
    Attributes are in float64 for X in float32 as well. A component whose responsibilities are too
    small for a float is estimated from their logarithms: it moves to the rows that it explains
    best.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    >>> model = lf.GaussianMixture(2, random_state=0).fit(X)
    >>> np.sort(model.means_[:, 0]).round(6)
    array([ 1., 11.])
    >>> model.weights_.round(6)
    array([0.5, 0.5])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MixtureModel._parameter_constraints,
        "covariance_type": [StrOptions({"full", "tied", "diag", "spherical"})],
        "reg_covar": [Interval(Real, 0.0, None, closed="left")],
        "precisions_init": ["array-like", None],
        "effort": [StrOptions(set(PATIENCE)), WholeNumbers(0, 2**31 - 1)],
    }
    _required = MixtureModel._required | {"covariances_", "precisions_", "precisions_cholesky_"}

    def __init__(
        self,
        n_components: int | Any = 1,
        *,
        covariance_type: str | Any = "full",
        tol: float | Any = 1e-3,
        reg_covar: float | Any = 1e-6,
        max_iter: int | Any = 100,
        n_init: int | Any = 1,
        init_params: str | Any = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        effort: str | int | Any = "low",
        random_state: Any = None,
        warm_start: bool | Any = False,
        verbose: int | Any = 0,
        verbose_interval: int | Any = 10,
        engine: str | Any = "auto",
        device: Any = None,
        checkpoint: Any = None,
        callback: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.effort = effort
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.callback = callback

    @property
    def _search(self) -> tuple[int, int]:
        effort, passed = self.effort, (self.weights_init, self.means_init, self.precisions_init)
        patience = PATIENCE[effort] if isinstance(effort, str) else int(effort)
        is_drawn = all(given is None for given in passed) and self.n_components > 1
        races = is_drawn and patience > 0 and self.n_init == 1
        return (STARTS if races else 1), patience

    def _recipe(self) -> Recipe:
        kind: Any = self.covariance_type  # has been checked
        return recipes.mixture(kind, regularisation=float(self.reg_covar))

    @property
    def _accepts_sparse(self) -> bool:
        # products of columns would fill the rows
        return self.covariance_type in ("diag", "spherical")

    def _given_start(self, layout: Layout) -> dict[str, Tensor]:
        found = super()._given_start(layout)
        if self.precisions_init is None:
            return found
        kind, k, d = self.covariance_type, int(self.n_components), layout.n_features
        precisions = check_array(
            self.precisions_init, dtype=np.float64, ensure_2d=False, allow_nd=kind == "full"
        )
        check_shape("precisions", precisions, covariance_shape(kind, k, d), f"{kind} precision")
        if kind in ("diag", "spherical"):
            if (precisions <= 0).any():
                raise ValueError(f"precisions_init: '{kind} precision' should be positive")
            covariances = 1 / precisions
        else:
            turned = np.swapaxes(precisions, -1, -2)
            if not np.allclose(precisions, turned) or np.linalg.eigvalsh(precisions).min() <= 0:
                raise ValueError(
                    f"precisions_init: '{kind} precision' should be symmetric, positive-definite"
                )
            covariances = np.linalg.inv((precisions + turned) / 2)
            covariances = (covariances + np.swapaxes(covariances, -1, -2)) / 2
        return {**found, "covariances": torch.from_numpy(covariances).to(layout.device)}

    def _store(self, outcome: MixtureOutcome, source: Source) -> None:
        super()._store(outcome, source)
        factors = outcome.components.factors
        matrices = self.covariance_type in ("full", "tied")
        precisions = factors @ factors.mT if matrices else factors.square()
        self.covariances_ = source.to_input_kind(outcome.components.covariances)
        self.precisions_ = source.to_input_kind(precisions)
        self.precisions_cholesky_ = source.to_input_kind(factors)

    def _warn(self, weight: float) -> None:
        super()._warn(weight)
        covariances, least = to_tensor(self.covariances_), float(self.reg_covar)
        if self.covariance_type in ("full", "tied"):
            variances = torch.linalg.eigvalsh(covariances)[..., 0]
        else:
            variances = covariances.reshape(len(covariances), -1).amin(dim=1)
        # less than `reg_covar` of its own, in its narrowest direction
        narrow = (variances.reshape(-1) < 2 * least).nonzero()[:, 0].tolist()
        if not narrow or self.max_iter == 0:
            return
        tied = self.covariance_type == "tied"
        who = "The common covariance has" if tied else f"Components {narrow} have"
        warn_user(
            f"{who} less variance in one direction than reg_covar={least:g}, which decides the "
            "density there. Constant or collinear columns, duplicates, and components of few rows "
            "do that: leave such columns out, fit fewer components, or choose reg_covar for the "
            "units of X.",
            ConvergenceWarning,
        )

    def _check_loaded(self) -> None:
        shape = covariance_shape(self.covariance_type, *self.means_.shape)
        for name in ("covariances_", "precisions_", "precisions_cholesky_"):
            found = tuple(getattr(self, name).shape)
            if found != shape:
                raise ValueError(
                    f"{name}: found the shape {found}; with covariance_type="
                    f"{self.covariance_type!r} it is {shape}"
                )

    def _n_parameters(self) -> int:
        k, d = int(self.n_components), int(self.n_features_in_)
        of_covariance = {
            "full": k * d * (d + 1) // 2,
            "tied": d * (d + 1) // 2,
            "diag": k * d,
            "spherical": k,
        }
        return super()._n_parameters() + of_covariance[self.covariance_type]

    def _draw(self, rng: np.random.RandomState, j: int, mean: np.ndarray, n: int) -> np.ndarray:
        covariances = to_tensor(self.covariances_).cpu().numpy()
        kind, scaling = self.covariance_type, self._view.scaling
        own = covariances if kind == "tied" else covariances[j]
        if kind in ("full", "tied"):
            away = rng.multivariate_normal(np.zeros_like(mean), own, n)
        else:
            away = rng.standard_normal((n, len(mean))) * np.sqrt(own)
        if scaling is None:
            return mean + away
        # covariances are in scaled units
        middle = scaling.from_data(torch.from_numpy(mean)[None])
        return scaling.to_data(middle + torch.from_numpy(away)).numpy()
