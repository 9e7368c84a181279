"""Mixtures of Bernoulli components (columns of 0 and 1) and of Poisson components (counts)."""

from typing import Any

import numpy as np
from torch import Tensor

from lloydformer.estimators.mixture import MixtureModel


class BernoulliMixture(MixtureModel):
    r"""Mixture of Bernoulli components: groups of rows of 0 and 1, fitted by EM.

    Within component j the columns are independent, and column c is 1 with probability $m_{jc}$:
    latent class analysis. One layer of `lf.recipes.mixture(family="bernoulli")` is an iteration.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, k.
    tol : float, default=1e-3
        A start ends when the mean log-likelihood changes by less than this in an iteration.
    max_iter : int, default=100
        Maximum number of iterations of one start.
    n_init : int, default=1
        Number of starts. The parameters with the largest `lower_bound_` are kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        Start: statistics of the clusters of k-means; seeds of k-means++ as means; random
        responsibilities; random rows as means. To each component, one row of the overall mean is
        added, as a probability of 0 or 1 would never change.
    weights_init : array-like of shape (n_components,), default=None
        Weights of the start. None: by `init_params`.
    means_init : array-like of shape (n_components, n_features), default=None
        Probabilities of the start. None: by `init_params`.
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
        Probability of a 1 in each column.
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
    PoissonMixture : Columns of counts.
    GaussianMixture : Columns of any numbers.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[1.0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]])
    >>> model = lf.BernoulliMixture(2, random_state=0).fit(X)
    >>> model.labels_[0] != model.labels_[2]
    np.True_
    >>> model.weights_.round(4)
    array([0.5, 0.5])
    """

    _family = "bernoulli"

    def __init__(
        self,
        n_components: int | Any = 1,
        *,
        tol: float | Any = 1e-3,
        max_iter: int | Any = 100,
        n_init: int | Any = 1,
        init_params: str | Any = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
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
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.callback = callback

    def _check_values(self, ends: Tensor) -> None:
        if float(ends.min()) < 0 or float(ends.max()) > 1:
            raise ValueError(
                f"X: found values from {float(ends.min()):g} to {float(ends.max()):g}; a Bernoulli "
                "mixture needs 0 and 1 (or shares between them), code yes as 1 and no as 0"
            )

    def _draw(self, rng: np.random.RandomState, j: int, mean: np.ndarray, n: int) -> np.ndarray:
        return rng.binomial(1, np.clip(mean, 0, 1), (n, len(mean))).astype(float)


class PoissonMixture(MixtureModel):
    r"""Mixture of Poisson components: groups of rows of counts, fitted by EM.

    Within component j the columns are independent, and column c has a Poisson distribution with the
    rate $m_{jc}$. One layer of `lf.recipes.mixture(family="poisson")` is an iteration.

    Parameters
    ----------
    n_components : int, default=1
        Number of components, k.
    tol : float, default=1e-3
        A start ends when the mean log-likelihood changes by less than this in an iteration.
    max_iter : int, default=100
        Maximum number of iterations of one start.
    n_init : int, default=1
        Number of starts. The parameters with the largest `lower_bound_` are kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        Start: statistics of the clusters of k-means; seeds of k-means++ as means; random
        responsibilities; random rows as means. To each component, one row of the overall mean is
        added, as a rate of 0 would never change.
    weights_init : array-like of shape (n_components,), default=None
        Weights of the start. None: by `init_params`.
    means_init : array-like of shape (n_components, n_features), default=None
        Rates of the start. None: by `init_params`.
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
        Rate of each column.
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
    BernoulliMixture : Columns of 0 and 1.
    GaussianMixture : Columns of any numbers.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[1.0, 9.0], [0.0, 11.0], [12.0, 1.0], [10.0, 0.0]])
    >>> model = lf.PoissonMixture(2, random_state=0).fit(X)
    >>> model.labels_[0] == model.labels_[1] != model.labels_[2]
    np.True_
    >>> np.sort(model.means_[:, 0]).round(3)
    array([ 0.5, 11. ])
    """

    _family = "poisson"

    def __init__(
        self,
        n_components: int | Any = 1,
        *,
        tol: float | Any = 1e-3,
        max_iter: int | Any = 100,
        n_init: int | Any = 1,
        init_params: str | Any = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
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
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.engine = engine
        self.device = device
        self.checkpoint = checkpoint
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check_values(self, ends: Tensor) -> None:
        if float(ends.min()) < 0:
            raise ValueError(
                f"X: Negative values in data, found {float(ends.min()):g}; a Poisson mixture needs "
                "counts"
            )

    def _draw(self, rng: np.random.RandomState, j: int, mean: np.ndarray, n: int) -> np.ndarray:
        return rng.poisson(mean, (n, len(mean))).astype(float)
