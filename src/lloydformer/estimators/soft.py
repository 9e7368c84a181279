"""Soft k-means."""

from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.array_api import to_tensor
from lloydformer.data.rows import Rows
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.estimators.tempered import Tempered
from lloydformer.numerics.clusters import log_shares
from lloydformer.plans.session import Session
from lloydformer.solving.rules import Rules
from lloydformer.solving.scale import soft_scale

# Chunk size of a comparison of all pairs of centers; bounds temporary memory.
_PART = 512

# Two centers c and b count as one if gamma |c - b|^2 is below. The shares of a point with
# gamma |x - c|^2 = 1 then differ by at most 6.4 %, as |x - c|^2 - |x - b|^2 is at most
# 2 |x - c| |c - b| + |c - b|^2. Chosen by hand.
_COINCIDE = 1e-3


class SoftKMeans(Tempered):
    r"""Soft k-means: every point belongs to every cluster, more to the near ones.

    The share of point i in cluster j is
    $p_{ij} \propto \exp(-\gamma \lVert x_i - c_j \rVert^2)$ with $\gamma$ = `inverse_temperature`.
    A center is the mean of all points, weighted by their shares (alg:soft-kmeans).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    inverse_temperature : "scale" or float, default="scale"
        Factor $\gamma > 0$ of the squared distances. With a large value the result is nearly that
        of `KMeans`; with a small one centers coincide. "scale" takes it from the spread of the
        data: d over the mean squared distance to the nearest center, after five iterations of
        `KMeans`. Then the result does not change when X is multiplied by a factor.
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
        Free energy $-\frac1\gamma \sum_i w_i \log \sum_j \exp(-\gamma \lVert x_i - c_j \rVert^2)$
        of the centers at the beginning of each iteration of the best start, then that of the
        returned centers. It never rises.
    inverse_temperature_ : float
        The factor $\gamma$ that was used: the parameter, or what "scale" gave.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.

    See Also
    --------
    KMeans : Every point belongs to its nearest center only.
    RobustKMeans : Far points of a cluster count less.

    Notes
    -----
    A start ends when `tol` is reached or after `max_iter` iterations. Where shares are too small
    for a float, their logarithms are used: a center far from all points moves to the points that
    are least far. Where even logarithms overflow (beyond 1e300), all points have the same share,
    and the center moves to their mean.

    References
    ----------
    .. [1] K. L. Clarkson, L. Horesh, T. Ito, C. Park and P. Ram, "Transformer Circuits Can Realize
       Clustering Algorithms".

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> model = lf.SoftKMeans(2, inverse_temperature=1.0, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(2)
    array([0.5, 5.5])
    >>> model.predict_proba([[3.0]]).round(2)  # half-way between the two
    array([[0.5, 0.5]])
    """

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        k: v for k, v in Tempered._parameter_constraints.items() if k != "empty"
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        inverse_temperature: float | str | Any = "scale",
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
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
        self.inverse_temperature = inverse_temperature
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start
        self.reference_centers = reference_centers
        self.checkpoint = checkpoint

    def _rules(self) -> Rules:
        # No cluster is empty: every point has a share in each.
        typical = self._typical_tolerance
        return Rules(int(self.max_iter), float(self.tol), empty="keep", typical=typical)

    def _recipe(self) -> Recipe:
        return recipes.soft(self._gamma)

    def _scale(self, session: Session, starts: list[Tensor]) -> float:
        return soft_scale(session, starts)

    def _n_coinciding(self) -> int:
        """A point's shares in two such centers are nearly the same, wherever it is."""
        centers = to_tensor(self.cluster_centers_).double()
        # The expansion of |c - b|^2 below loses fewer digits near the origin.
        centers = centers - centers.mean(dim=0)
        norms, count = centers.square().sum(dim=1), 0
        for start in range(0, len(centers), _PART):
            some = slice(start, start + _PART)
            squares = norms[some, None] - 2 * centers[some] @ centers.T + norms
            # `tril`: each center is compared with those before it.
            count += int((squares < _COINCIDE / self._gamma).tril(start - 1).any(dim=1).sum())
        return count

    def predict_proba(self, X: Any) -> Any:
        """Compute the share of each row in each cluster.

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
            The shares. Each row sums to 1. A tensor if X is a tensor.

        See Also
        --------
        SoftKMeans.predict : The cluster with the largest share.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.SoftKMeans(2, init=[[0.0], [4.0]]).fit([[0.0], [4.0]])
        >>> model.predict_proba([[2.0]])
        array([[0.5, 0.5]])
        """
        if is_collection(X):
            check_is_fitted(self)
            return self._map_chunks("predict_proba", X, self.n_clusters)
        gamma = self._gamma

        def shares(rows: Rows, centers: Tensor, _: Tensor) -> Tensor:
            scores = rows.scores(centers)
            found = (-gamma * scores).softmax(1)
            if bool(found.isfinite().all()):
                return found
            # gamma times a score has overflowed: once more with logarithms, in float64.
            return log_shares(scores.double(), gamma)[0].exp().to(scores.dtype)

        return self._map_leaves(X, shares)
