"""K-means: Lloyd's algorithm."""

from typing import Any, ClassVar

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.estimators.parameter_checks import StrOptions
from lloydformer.estimators.streaming import Streaming


class KMeans(Streaming):
    r"""K-means clustering by Lloyd's algorithm, a drop-in for scikit-learn's `KMeans`.

    Minimises $\sum_i w_i \min_j \lVert x_i - c_j \rVert^2$ (eq:kmeans-dc) with the recipe
    `lloyd()`. Parameters, attributes and warnings have the same meaning as in scikit-learn.
    `empty`, `engine`, `device`, `callback`, `warm_start`, `partial_fit`, tensors and model folders
    are additions.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
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
    copy_x : bool, default=True
        Accepted for compatibility with scikit-learn. X is never changed.
    algorithm : {"lloyd", "elkan"}, default="lloyd"
        Accepted for compatibility with scikit-learn. Both names give the same result.
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
    batch_size : int or None, default=None
        None: every iteration uses all rows. An int: `fit` uses random batches of this size, as
        scikit-learn's `MiniBatchKMeans` does. Then `max_iter` counts passes, and `tol` is checked
        once per pass; a pass is as many batches as make up `n_samples` rows. Initial centers are
        the best of `n_init` starts on a sample of three batches. `callback` and `verbose` report
        each batch, with an objective that is estimated from it.
    max_no_improvement : int or None, default=10
        With `batch_size`: stop after this number of batches in a row that do not lower the
        smoothed objective of the batches. None turns the rule off.
    reassignment_ratio : float, default=0.01
        With `batch_size`: a center that has received fewer rows than this fraction of those of
        the largest one moves to a row of the batch, if that lowers the objective. 0 turns it off.
    decay : float, default=0.0
        Share of its weight that every row so far loses with each batch of `partial_fit`, from 0 to
        1, so that centers follow a stream that drifts. A row counts half after
        log(1/2) / log(1 - decay) batches: 0.01 is a half-life of 69, 0.1 of 6.6. With 0 nothing is
        forgotten, with 1 all but the last batch. `fit` ignores it.
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
        Cluster of each row: the index of its nearest center in `cluster_centers_`. On ties the
        lower index. A tensor if X was a tensor.
    inertia_ : float
        Sum over the rows of their weight times the squared distance to the nearest center.
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
    n_steps_ : int
        Number of batches: those given to `partial_fit`, or those of a `fit` with `batch_size`.
        Not defined after other fits.

    See Also
    --------
    RelocatingKMeans : Lower objectives than many starts of `KMeans`, in less time.
    SphericalKMeans : Compares rows by their direction only.
    fit_batch : Many small problems in one call.
    sklearn.cluster.KMeans : The estimator that this one replaces.

    Notes
    -----
    A start ends when no label changes in an iteration, when `tol` is reached, or after `max_iter`
    iterations. If `tol` ends the best start while the objective falls by more than 0.1 % per
    iteration, a `ConvergenceWarning` says so. At the end every row is assigned once more, so that
    `labels_` belong to `cluster_centers_`. From the same start, on data without ties, labels,
    `n_iter_` and `inertia_` are those of scikit-learn. The same `random_state` draws other starts
    than scikit-learn; pass an array as `init` to compare the two.

    References
    ----------
    .. [1] S. P. Lloyd, "Least squares quantization in PCM", IEEE Transactions on Information Theory
       28(2), 1982.
    .. [2] D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding", SODA
       2007.
    .. [3] B. Bahmani et al., "Scalable k-means++", Proceedings of the VLDB Endowment 5(7), 2012.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = lf.KMeans(n_clusters=2, random_state=0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]), model.inertia_
    (array([ 1., 10.]), 16.0)
    >>> near, far = model.predict([[0, 0], [12, 3]])
    >>> bool(near == model.labels_[0]), bool(far == model.labels_[3])
    (True, True)
    """

    _accepts_sparse = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Streaming._parameter_constraints,
        "copy_x": ["boolean"],
        "algorithm": [StrOptions({"lloyd", "elkan"})],
        "missing": [StrOptions({"error", "ignore", "impute"})],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        copy_x: bool | Any = True,
        algorithm: str | Any = "lloyd",
        empty: str | Any = "farthest",
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
        reference_centers: Any = None,
        checkpoint: Any = None,
        batch_size: int | Any | None = None,
        max_no_improvement: int | Any | None = 10,
        reassignment_ratio: float | Any = 0.01,
        decay: float | Any = 0.0,
        missing: str | Any = "error",
    ) -> None:
        # The parameters of scikit-learn's `KMeans`, in its order; from `empty` on those of ours.
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.empty = empty
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start
        self.reference_centers = reference_centers
        self.checkpoint = checkpoint
        self.batch_size = batch_size
        self.max_no_improvement = max_no_improvement
        self.reassignment_ratio = reassignment_ratio
        self.decay = decay
        self.missing = missing

    def _recipe(self) -> Recipe:
        return recipes.lloyd()
