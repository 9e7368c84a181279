"""K-prototypes: clustering of categories, and of categories and numbers."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import Blocks
from lloydformer.data.categories import (
    Columns,
    EncodedBlocks,
    EncodedRows,
    Encoding,
    cao_start,
    complete_codes,
    encode,
    fit_encoding,
    huang_start,
)
from lloydformer.data.layout import leaf_rows, part_rows
from lloydformer.data.rows import Rows
from lloydformer.data.shard import Shard
from lloydformer.data.sparse_blocks import canonicalise_csr
from lloydformer.engines.dask.chunks import is_collection
from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.initial_centers import InitialCenters, is_array
from lloydformer.estimators.parameter_checks import Interval, StrOptions
from lloydformer.estimators.source import Source, weights_in_units
from lloydformer.numerics.checks import ArgumentError, check_range
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.prototypes import PrototypesPlan
from lloydformer.solving.driver import Restarts
from lloydformer.solving.iterations import PlanIterations

_CPU = torch.device("cpu")
# Starts that draw, of which 10 are made unless `n_init` is given; as many as kmodes makes.
_DRAWN, _STARTS = ("k-means++", "huang", "random"), 10


class KPrototypes(Clusterer):
    r"""K-prototypes clustering of categories and numbers; k-modes without numbers.

    Minimises $\sum_i w_i (\lVert x_i - c_{a_i} \rVert^2 + \gamma\, m_i)$: squared distances of the
    numbers, and $\gamma$ for each category in which row i differs from its center. A center has the
    means of the numbers and the most common categories of its rows.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, k. X needs at least k rows with positive weight.
    categories : sequence of str or int, callable or None, default=None
        The columns of categories, by name or by number from 0; or a function of X that returns
        these, such as `sklearn.compose.make_column_selector(...)`. None: columns of words, bools,
        or the categorical type of pandas. Whole numbers are numbers unless they are named here.
    gamma : float or None, default=None
        What a category that differs adds to a squared distance. None is half of the mean standard
        deviation of the columns of numbers, as in the package kmodes; 1 without such columns.
    missing : {"error", "category", "ignore"}, default="error"
        What happens to missing categories (None, NaN). With "category" they are a category of
        their own. With "ignore" they differ from no category and count for no mode. Missing numbers
        are an error.
    init : {"k-means++", "huang", "cao", "random"} or table, default="k-means++"
        Initial centers:

        - "k-means++": rows, each drawn with probability proportional to its weight times its
          distance to the nearest one so far; each is the best of several candidates.
        - "huang": categories drawn by their frequencies, then the most similar row; numbers from a
          normal distribution.
        - "cao": rows with common values that are far from each other. It draws nothing.
        - "random": k different rows, drawn with probability proportional to their weight.
        - Table of k rows, with the columns of X: the centers themselves.
    n_init : "auto" or int, default="auto"
        Number of starts. The result with the smallest `inertia_` is kept. "auto" is 10, or 1 for
        starts that draw nothing.
    max_iter : int, default=300
        Maximum number of iterations of one start.
    tol : float, default=0.0
        A start ends when no label changes, or when the centers move by at most `tol` times the mean
        variance of the columns of points.
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
        Implementation that runs the computation. "native" is compiled C++, "chunked" is PyTorch.
        "cuda" is an error, as tables are in CPU memory.
    callback : callable or None, default=None
        Called after each iteration with a `Progress`, which has the fields `start`,
        `iteration`, `objective` (of the centers at the beginning of the iteration), `shift`
        (squared distance that the centers moved), `n_points` and `seconds`. If it raises
        `KeyboardInterrupt`, the fit ends and keeps the best result so far.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_codes)
        Centers of the best start as points: numbers, less their means and times
        $\sqrt{2 / \gamma}$, and then a one-hot code for each column of categories.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row: the index of its nearest center. On ties the lower index.
    inertia_ : float
        Sum over the rows of their weight times the distance above to the nearest center.
    gamma_ : float
        The value of `gamma` that was used.
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

    See Also
    --------
    KMeans : Numbers only.
    BernoulliMixture : Probabilities of yes and no.

    Notes
    -----
    Rows are kept as a sparse matrix with one entry for each column of X, so memory is linear in the
    size of the table, whatever the number of categories. A category that was not seen in `fit`
    differs from that of every center. Tables are read in memory, on the CPU.

    References
    ----------
    .. [1] Z. Huang, "Extensions to the k-means algorithm for clustering large data sets with
       categorical values", Data Mining and Knowledge Discovery 2(3), 1998.
    .. [2] F. Cao, J. Liang and L. Bai, "A new initialization method for categorical data
       clustering", Expert Systems with Applications 36(7), 2009.

    Examples
    --------
    >>> import lloydformer as lf
    >>> X = [["red", "small", 1.0], ["red", "small", 2.0], ["blue", "large", 9.0]]
    >>> model = lf.KPrototypes(2, random_state=0).fit(X)
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2])
    True
    >>> {name: model.prototypes_[model.labels_[0]][name] for name in (0, 1)}
    {0: 'red', 1: 'small'}
    >>> bool(model.predict([["red", "tiny", 1.0]])[0] == model.labels_[0])
    True
    """

    _has_kernels: ClassVar[bool] = False
    _renamed_parameters: ClassVar[dict[str, str]] = {}
    # What the other estimators have as parameters.
    warm_start = False
    device = None
    _encoding: str  # `Encoding.to_json`
    gamma_: float

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: rule
            for name, rule in Clusterer._parameter_constraints.items()
            if name not in ("device", "warm_start", "reference_centers", "checkpoint", "init")
        },
        "init": [StrOptions({"k-means++", "huang", "cao", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "categories": [None, callable, "array-like", str, Integral],
        "gamma": [None, Interval(Real, 0, None, closed="neither")],
        "missing": [StrOptions({"error", "category", "ignore"})],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        categories: Any = None,
        gamma: float | Any | None = None,
        missing: str | Any = "error",
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 0.0,
        verbose: int | Any = 0,
        random_state: Any = None,
        empty: str | Any = "farthest",
        engine: str | Any = "auto",
        callback: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.categories = categories
        self.gamma = gamma
        self.missing = missing
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.empty = empty
        self.engine = engine
        self.callback = callback

    @property
    def encoding_(self) -> Encoding:
        """The columns of numbers and of categories, and how they became points.

        See Also
        --------
        KPrototypes.prototypes_ : The centers as rows of the table.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KPrototypes(1).fit([["a", 2.0], ["b", 4.0]])
        >>> model.encoding_.categories[0].values
        ('a', 'b')
        """
        return Encoding.from_json(self._encoding)

    @property
    def prototypes_(self) -> list[dict[Any, Any]]:
        """The centers as rows of the table: for each one its values by the name of the column.

        See Also
        --------
        KPrototypes.fit : Fits the centers.

        Examples
        --------
        >>> import lloydformer as lf
        >>> lf.KPrototypes(1).fit([["a", 2.0], ["a", 4.0]]).prototypes_
        [{1: 3.0, 0: 'a'}]
        """
        return self.encoding_.read_rows(np.asarray(self.cluster_centers_))

    def _recipe(self) -> Recipe:
        encoding = self.encoding_
        if not encoding.categories:
            return recipes.lloyd()
        return recipes.prototypes(encoding.sizes, len(encoding.numbers))

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        # Not by `_lower_once`, whose cache would keep a plan for each table.
        encoding = self.encoding_
        if not encoding.categories:
            return MeansPlan()
        return PrototypesPlan(n_numbers=len(encoding.numbers), sizes=encoding.sizes)

    def _read(self, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
        if self.engine == "cuda":
            raise ValueError(
                'engine: found "cuda"; KPrototypes runs on the CPU, pass "auto" or "native"'
            )
        rows = self._encode(X, reset)
        weights, unit = weights_in_units(sample_weight, rows.matrix.shape[0])
        mass = None if weights is None else torch.from_numpy(weights)
        k, d, gamma = int(self.n_clusters), rows.matrix.shape[1], self.gamma_
        offset = rows.unmatched.sum() if weights is None else rows.unmatched @ weights
        # The unit also turns squared distances of points into the distances of rows.
        blocks = EncodedBlocks(
            canonicalise_csr(rows.matrix),
            mass,
            leaf_rows(_CPU, d, k),
            part=part_rows(_CPU, 1, k),
            weight_unit=unit * gamma / 2,
            offset=float(offset),
        )
        check_range("X", blocks.ends, *rows.matrix.shape)
        return Source(blocks, None)

    def _encode(self, X: Any, reset: bool) -> EncodedRows:
        """Return rows as points; a fit chooses the categories."""
        if isinstance(X, Shard) or is_collection(X):
            kind = "a Shard" if isinstance(X, Shard) else "a dask collection"
            raise ValueError(f"X: found {kind}; KPrototypes reads tables in memory, pass one")
        columns = Columns(X)
        if reset:
            gamma = None if self.gamma is None else float(self.gamma)
            encoding = fit_encoding(columns, self.categories, gamma, str(self.missing))
            self._encoding, self.gamma_ = encoding.to_json(), encoding.gamma
            self.n_features_in_ = len(columns.names)
            self.__dict__.pop("feature_names_in_", None)
            if columns.named:
                self.feature_names_in_ = np.array(columns.names, dtype=object)
        elif len(columns.names) != self.n_features_in_:
            raise ValueError(
                f"X has {len(columns.names)} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        return encode(columns, self.encoding_)

    def _make_initial(self, X: Any, blocks: Blocks, rng: np.random.RandomState) -> InitialCenters:
        if not is_array(self.init):
            return InitialCenters(self, X, blocks.layout, rng)
        columns = Columns(self.init)
        if columns.n_rows != self.n_clusters:
            raise ArgumentError(
                "init",
                f"found {columns.n_rows} rows; pass one for each of {self.n_clusters} clusters",
            )
        given = copy(self)
        given.init = encode(columns, self.encoding_).matrix.toarray()
        return InitialCenters(given, X, blocks.layout, rng)

    def _prepare(self, opened: Preparation) -> Prepared:
        blocks, initial, rng, k = opened.blocks, opened.initial, opened.rng, int(self.n_clusters)
        assert isinstance(blocks, EncodedBlocks)
        n = initial.n_restarts
        if self.n_init == "auto" and not is_array(self.init):
            n = _STARTS if self.init in _DRAWN else 1
        self._n_init = initial.n_restarts = n
        encoding = self.encoding_
        named = "" if is_array(self.init) or not encoding.categories else self.init
        if named == "huang":
            drawn = (huang_start(blocks.matrix, encoding, k, rng) for _ in range(n))
            made: Iterator[np.ndarray] = drawn
        elif named == "cao":
            made = iter([cao_start(blocks.matrix, encoding, k)] * n)
        else:
            made = (centers.numpy() for centers in initial.generate(opened.session))
        starts = (
            torch.from_numpy(complete_codes(centers, blocks.matrix, encoding)) for centers in made
        )
        return self._plan_for(blocks), Restarts(n, starts), PlanIterations()

    def _plan_for(self, blocks: Blocks) -> Plan:
        # With the cost of categories that are unknown or ignored.
        plan = self._plan()
        assert isinstance(blocks, EncodedBlocks)
        return replace(plan, offset=blocks.offset) if isinstance(plan, PrototypesPlan) else plan

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
        ndarray of shape (n_samples, n_clusters)
            The square roots of the squared distances of the numbers plus `gamma_` for each category
            that differs.

        See Also
        --------
        Clusterer.predict : The nearest center only.

        Examples
        --------
        >>> import lloydformer as lf
        >>> model = lf.KPrototypes(2, init=[["a", 0.0], ["b", 8.0]], gamma=9.0)
        >>> model.fit([["a", 0.0], ["b", 8.0]]).transform([["b", 4.0]]).tolist()
        [[5.0, 4.0]]
        """
        squares = super().transform(X) ** 2 + self._encode(X, False).unmatched[:, None]
        return np.sqrt(self.gamma_ / 2 * np.maximum(squares, 0))

    def _own_distances(self, rows: Rows, centers: Tensor, returned: Tensor, own: Tensor) -> Tensor:
        return super()._own_distances(rows, centers, returned, own) * (self.gamma_ / 2) ** 0.5

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags
