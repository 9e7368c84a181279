"""Relocating k-means."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from lloydformer.data.missing import MaskedBlocks
from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.parameter_checks import Interval, StrOptions, WholeNumbers
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.driver import Restarts
from lloydformer.solving.effort import EFFORTS, Effort, effort_of
from lloydformer.solving.recombinations import Recombinations
from lloydformer.solving.relocations import Relocations
from lloydformer.solving.rules import Rules
from lloydformer.solving.sampling import add_sampled_starts, after_sampling, sample_rows

# Keys of `search_options`, and their values.
_SEARCH_OPTIONS = {
    "n_moved": WholeNumbers(1, 2**31 - 1),
    "n_draws": WholeNumbers(1, 2**31 - 1),
    "n_iter_between": WholeNumbers(0, 2**31 - 1),
}


class RelocatingKMeans(Clusterer):
    r"""K-means that leaves poor local minima by relocating centers.

    Minimises $\sum_i w_i \min_j \lVert x_i - c_j \rVert^2$, as `KMeans` does. It runs Lloyd's
    iterations and, between them, relocations: some clusters, drawn by their error, are split in
    two, and as many centers whose removal costs least are removed. A relocation is kept if it
    lowers the objective. The result has a lower objective than that of many starts, in less time.
    With a larger `effort` several solutions form a pool, and pairs of them are recombined: their 2k
    centers are merged to k, relocated again, and kept if better than the worst of the pool.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    effort : {"low", "medium", "high", "best"} or int, default="low"
        How much is searched. "low" relocates from one start. The others have a pool: "medium"
        4 starts and 16 recombinations (12 for fewer than 25 clusters), "high" 10 and 96 (40 for
        fewer than 25 clusters, otherwise 128 for fewer than 16 rows a cluster), "best" 16 and 400.
        An integer is the number of recombinations; the pool has a sixth as many starts, from 4 to
        16; 0 is "low". If `init` is an array, it is the first start of the pool, and the others use
        "k-means++". docs/recombining.md has the objectives and times of each.
    time_limit : float or None, default=None
        No new layer begins after this many seconds. Seeding and the last assignment are not
        bounded, so the fit may take longer. The best result so far is kept; it depends on the speed
        of the machine. None: no limit.
    patience : int or None, default=None
        Stop relocating after this number of relocations in a row that were not kept. A larger value
        gives better centers and takes longer. 0 is Lloyd's algorithm. None: that of `effort`, 5
        for "low".
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
        Number of starts, or of pools. The result with the smallest `inertia_` is kept. "auto" is
        10 if `init` is "random" or a callable and `effort` is "low", otherwise 1.
    max_iter : int or None, default=None
        Maximum number of layers of one start or pool. An iteration of Lloyd's algorithm is one
        layer; a relocation is three layers, and one for each cluster that it splits. A pool has
        fewer starts if its share is below 20 layers a start; below 40 layers in total, the fit is
        that of "low". None: 2000 times the number of starts and recombinations, in total.
    tol : float, default=1e-4
        Relative tolerance of the stop rule. A start ends when the squared distance that the
        centers moved in one iteration, summed over all centers, is at most `tol` times the
        mean variance of the columns. That variance counts at most four times the squared
        distance, per column, within which half of the rows are from their median (from 0 if X is
        sparse), so that a few far rows do not enlarge it. With 0, a start ends when its centers no
        longer move.
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
    search_options : dict or None, default=None
        For experiments: settings of a relocation, whose defaults suit most data.
        "n_moved": number of clusters that it splits, 5, or with a pool n_clusters // 6, at least 5
        and at most 10. "n_draws": number of random splits tried for each, 3. "n_iter_between":
        number of Lloyd's iterations before it, instead of as many as the centers need to settle.
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
        Number of layers of the best start or pool, those within relocations included.
    objective_history_ : ndarray of shape (n_iter_ + 1,)
        Objective of the centers at the beginning of each iteration of the best start, then that
        of the returned centers. The objective is the one of `inertia_`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features seen during `fit`. Defined only when all column names of X are
        strings: in a data frame, or in a file opened with `lf.data.open_dataset`.

    See Also
    --------
    KMeans : Lloyd's iterations only.
    lloydformer.recipes.relocating : A relocation as a circuit.

    Notes
    -----
    `objective_history_` never rises; with a pool it is the lowest objective of all solutions so
    far. Increases caused by rounding are removed, so values may differ slightly from those
    passed to `callback`.
    A cluster that loses all its points keeps its center until a relocation removes it, whereas
    `KMeans` fills it at once: from a start with empty clusters `KMeans` may end lower.
    Unless `max_iter` or `time_limit` ends it, the result is never above that of
    ``KMeans(empty="keep")`` from the same start.
    docs/relocating.md has the algorithm step by step, and measurements.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> grid = 10.0 * np.stack(np.meshgrid(range(3), range(3)), axis=-1).reshape(-1, 2)
    >>> X = grid[np.arange(90) % 9] + np.random.default_rng(0).normal(size=(90, 2))
    >>> start = X[::9][:9]  # nine centers in one of nine clusters
    >>> stuck = lf.KMeans(9, init=start).fit(X)
    >>> moved = lf.RelocatingKMeans(9, init=start, random_state=0).fit(X)
    >>> moved.inertia_ < 0.2 * stuck.inertia_
    True
    """

    _accepts_sparse: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k != "empty"},
        "effort": [StrOptions(set(EFFORTS)), WholeNumbers(0, 2**31 - 1)],
        "time_limit": [None, Interval(Real, 0, None, closed="left")],
        "max_iter": [None, *Clusterer._parameter_constraints["max_iter"]],
        "patience": [None, Interval(Integral, 0, None, closed="left")],
        "missing": [StrOptions({"error", "ignore", "impute"})],
        "search_options": [None, dict],
    }
    _renamed_parameters: ClassVar[dict[str, str]] = {
        **Clusterer._renamed_parameters,
        "n_moved": "search_options.n_moved",
        "n_draws": "search_options.n_draws",
        "rest": "search_options.n_iter_between",
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        effort: str | int | Any = "low",
        time_limit: float | Any | None = None,
        patience: int | Any | None = None,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any | None = None,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
        reference_centers: Any = None,
        checkpoint: Any = None,
        search_options: dict[str, int] | Any | None = None,
        missing: str | Any = "error",
    ) -> None:
        self.n_clusters = n_clusters
        self.effort = effort
        self.time_limit = time_limit
        self.patience = patience
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
        self.search_options = search_options
        self.missing = missing

    # Phases between relocations are short: a tolerance that a few far rows enlarge would end each
    # of them, and the fit, above the local minimum.
    _typical_tolerance = True

    # Not lowered: the recipe has two stages, and its iterations between relocations are Lloyd's.
    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        return MeansPlan()

    @property
    def _search_effort(self) -> Effort:
        return effort_of(self.effort).within(None if self.max_iter is None else int(self.max_iter))

    @property
    def _n_pool(self) -> int:  # type: ignore[override]
        return self._search_effort.n_pool

    def _prepare(self, opened: Preparation) -> Prepared:
        effort, k = self._search_effort, int(self.n_clusters)
        initial, session = opened.initial, opened.session
        n = initial.n_restarts
        options = {name: int(value) for name, value in (self.search_options or {}).items()}
        relocations = Relocations(
            n_moved=options.get("n_moved", effort.relocation_size(k)),
            n_draws=options.get("n_draws", 3),
            patience=effort.patience if self.patience is None else int(self.patience),
            rest=options.get("n_iter_between"),
            seed=int(opened.rng.randint(2**31 - 1)),
        )
        # The seed is drawn before the initial centers, so that it does not depend on `init`.
        if effort.n_pool == 1:
            return self._fit_plan(opened), Restarts(n, initial.generate(session)), relocations
        n_children = effort.n_children_for(k, session.layout.n_rows)
        if isinstance(opened.blocks, MaskedBlocks):
            raise ValueError(
                f"effort: found {self.effort!r} for rows with missing values, which have no pool "
                'of solutions; pass effort="low", with a larger n_init'
            )
        pool = Recombinations(relocations, effort.n_pool, n_children, effort.child_patience(k))
        is_large = sample_rows(session.layout, k) is not None
        # A sample is gathered as dense rows, which may take more memory than the sparse matrix.
        if not is_large or isinstance(opened.blocks, SparseBlocks):
            return self._plan(), Restarts(n, initial.generate(session, pool.n_starts)), pool
        starts = add_sampled_starts(
            initial.generate(session), session, k, pool, self._rules(), opened.rng, opened.deadline
        )
        return self._plan(), Restarts(n, starts), after_sampling(pool, opened.deadline)

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, value in (self.search_options or {}).items():
            if name not in _SEARCH_OPTIONS:
                raise ValueError(
                    f"search_options: found the key {name!r}; there are "
                    f"{', '.join(_SEARCH_OPTIONS)}"
                )
            if not _SEARCH_OPTIONS[name].is_satisfied_by(value):
                raise ValueError(
                    f"search_options: found {value!r} for {name!r}; pass {_SEARCH_OPTIONS[name]}"
                )

    def _rules(self) -> Rules:
        most = effort_of(self.effort).max_layers if self.max_iter is None else int(self.max_iter)
        # A relocation removes centers without points first: their removal costs nothing.
        return Rules(most, float(self.tol), empty="keep", typical=self._typical_tolerance)
