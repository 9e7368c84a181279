"""Robust k-means."""

from typing import Any, ClassVar

from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import TopK
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.parameter_checks import StrOptions
from lloydformer.estimators.tempered import Tempered
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.session import Session
from lloydformer.solving.scale import robust_scale


class RobustKMeans(Tempered):
    r"""Robust k-means: the farther a point is from its center, the less it counts.

    A center is the mean of the points of its cluster, weighted by `activation` of
    $-\gamma \lVert x_i - c_j \rVert^2$ with $\gamma$ = `inverse_temperature` (alg:rob-kmeans).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    inverse_temperature : "scale" or float, default="scale"
        Factor $\gamma > 0$ of the squared distances. The larger it is, the fewer points count. The
        right value depends on the scale of the data and, with sparsemax, on the size of the
        clusters: larger clusters need a smaller value. "scale" takes it from the data, such that
        nine tenths of the points of a cluster of mean size count. Then the result does not change
        when X or `sample_weight` is multiplied by a factor.
    activation : {"sparsemax", "softmax"} or TopK, default="sparsemax"
        Function that turns scores into weights. "sparsemax" gives points beyond a threshold no
        weight at all, "softmax" gives all points of the cluster some, and
        `lloydformer.circuits.activations.TopK(m)` gives weight to the m nearest ones.
    init : {"robust", "k-means++", "k-means||", "random"}, array or callable, default="robust"
        Initial centers:

        - "robust": k-means++ for data with outliers. Squared distances are capped at four
          times the squared radius that holds 80 % of the rows, and more candidates are tried.
        - "k-means++": greedy k-means++, as in scikit-learn. It prefers far points, so that
          outliers become initial centers, and remain centers.
        - "k-means||": draws many candidates per pass over the data and reduces them to k.
          Takes six passes for any k; for data larger than memory.
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
        Cluster of each row: the index of its nearest center in `cluster_centers_`. On ties the
        lower index. A tensor if X was a tensor.
    inertia_ : float
        Sum over the rows of their weight times the squared distance to the nearest center.
    n_iter_ : int
        Number of iterations of the best start.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the centers at the beginning of each iteration of the best start, then that
        of the returned centers. The objective is the one of `inertia_`.
    inverse_temperature_ : float
        The factor $\gamma$ that was used: the parameter, or what "scale" gave.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.

    See Also
    --------
    TrimmedKMeans : Leaves out the farthest points and tells which they are.
    lloydformer.circuits.activations.TopK : Soft-max over the m nearest points.

    Notes
    -----
    A start ends when `tol` is reached or after `max_iter` iterations. `inertia_` and
    `objective_history_` count all points, so the history may rise.

    The threshold $\tau$ of sparsemax solves $\sum_i w_i (z_i - \tau)_+ = 1$ over the points of a
    cluster, where $z_i$ is the score. A point with weight 2 counts as two equal points. So the
    scale of `sample_weight` matters if `inverse_temperature` is a number: twice the weights is a
    narrower cluster, not the same one. With `TopK(m)` the nearest points of total weight m count.
    With "softmax" the scale does not matter.

    References
    ----------
    .. [1] K. L. Clarkson, L. Horesh, T. Ito, C. Park and P. Ram, "Transformer Circuits Can Realize
       Clustering Algorithms".
    .. [2] A. F. T. Martins and R. F. Astudillo, "From softmax to sparsemax", ICML 2016.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[0.0], [1.0], [2.0], [40.0], [60.0], [61.0], [62.0]])
    >>> start = [[1.0], [61.0]]
    >>> lf.KMeans(2, init=start).fit(X).cluster_centers_[:, 0]
    array([ 1.  , 55.75])
    >>> lf.RobustKMeans(2, init=start).fit(X).cluster_centers_[:, 0].round(2)
    array([ 1., 61.])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Tempered._parameter_constraints,
        "activation": [StrOptions({"sparsemax", "softmax"}), TopK],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        inverse_temperature: float | str | Any = "scale",
        activation: Any = "sparsemax",
        init: Any = "robust",
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
        self.inverse_temperature = inverse_temperature
        self.activation = activation
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
        return recipes.robust(self._gamma, self.activation)

    def _scale(self, session: Session, starts: list[Tensor]) -> float:
        # Only the activation of this plan counts: `robust_scale` sets the temperature of each step.
        plan = self._plan()
        assert isinstance(plan, RobustPlan)
        return robust_scale(session, starts, plan)
