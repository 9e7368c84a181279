"""K-means by a trained layer."""

from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.parameter_checks import Interval
from lloydformer.learning.learned_run import LearnedIterations, dense_run, symmetric_run
from lloydformer.learning.pretrained import (
    SYMMETRIC,
    ModelCard,
    Pretrained,
    available,
    load_from_card,
    read_card,
)
from lloydformer.learning.symmetric.model import symmetric_from_card
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.solving.rules import Rules


class LearnedKMeans(Clusterer):
    """K-means by a trained layer, followed by Lloyd's algorithm.

    Runs `n_steps` steps of a layer that was trained for k-means, then at most `max_iter`
    iterations of Lloyd's algorithm.

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
    n_steps : int, default=10
        Number of steps of the trained layer.
    max_iter : int, default=300
        Maximum number of iterations of Lloyd's algorithm after these steps.
    compare_to_lloyd : bool, default=True
        If True, also run at most `n_steps` + `max_iter` iterations of Lloyd's algorithm from the
        same start and keep the better result. So the result is never worse than that of `KMeans`
        with at most as many iterations, for instance its default of 300.
    pretrained : str or Path, default="symmetric"
        The trained weights. "symmetric" is one layer for every n, d and k. A name from
        `lf.learning.available()` is a layer of the paper, for one d and k, and "auto" is the one
        for the d and k of the data. A path is a card that `lloydformer train` has written.
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
        Number of learned steps and iterations of Lloyd's algorithm of the best result.
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
    KMeans : Lloyd's algorithm only.
    RelocatingKMeans : Usually lower objectives.
    lloydformer.learning.available : Names of the trained layers in the package.

    Notes
    -----
    A step of the symmetric layer takes up to ten times as long as an iteration of Lloyd's
    algorithm. It runs on every engine and takes `sample_weight`. The paper's layers
    (sec:results:train) scale the columns to [0, 1] and back, take time that grows with n^2, and
    accept no `sample_weight`. docs/learning.md shows what to expect.

    Examples
    --------
    >>> import numpy as np, lloydformer as lf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(20, 7))[rng.integers(20, size=400)] + 0.05 * rng.normal(size=(400, 7))
    >>> learned = lf.LearnedKMeans(20, init=X[:20]).fit(X)
    >>> learned.inertia_ <= lf.KMeans(20, init=X[:20]).fit(X).inertia_
    True
    """

    _accepts_sparse = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k != "max_iter"},
        "pretrained": [str, Path],
        "n_steps": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "compare_to_lloyd": ["boolean"],
    }
    _renamed_parameters: ClassVar[dict[str, str]] = {
        **Clusterer._renamed_parameters,
        "polish": "max_iter",
        "beside_lloyd": "compare_to_lloyd",
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        init: Any = "k-means++",
        n_init: Any = "auto",
        n_steps: int | Any = 10,
        max_iter: int | Any = 300,
        compare_to_lloyd: bool | Any = True,
        pretrained: str | Path | Any = SYMMETRIC,
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
        self.init = init
        self.n_init = n_init
        self.n_steps = n_steps
        self.max_iter = max_iter
        self.compare_to_lloyd = compare_to_lloyd
        self.pretrained = pretrained
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

    def _plan(self, rng: Any = None) -> Plan:
        """Lloyd's plan: labels by the nearest center, and iterations after the learned steps."""
        return MeansPlan()

    def _rules(self) -> Rules:
        typical = self._typical_tolerance
        return Rules(int(self.max_iter), float(self.tol), self.empty, typical=typical)

    def _prepare(self, opened: Preparation) -> Prepared:
        plan, restarts, _ = super()._prepare(opened)
        n_steps, max_iter = int(self.n_steps), int(self.max_iter)
        session = opened.session
        card = None if self.pretrained == "auto" else read_card(self.pretrained)
        if card is not None and card.is_symmetric:
            make_run = symmetric_run(symmetric_from_card(card), session, n_steps)
        elif session.layout.weighted:
            raise ValueError(
                "sample_weight: a trained layer for one d and k has none; pass None, or "
                f'pretrained="{SYMMETRIC}"'
            )
        else:
            trained = _load_for_sizes(card, session.layout.n_features, int(self.n_clusters))
            make_run = dense_run(trained, session, n_steps)
        learned = LearnedIterations(make_run, n_steps, max_iter, bool(self.compare_to_lloyd))
        return plan, restarts, learned


def _load_for_sizes(card: ModelCard | None, n_features: int, n_clusters: int) -> Pretrained:
    """Load the weights of a card, or without one those for this d and k.

    Raises `ValueError` if they are for another d or k, or if there are none.
    """
    name = f"d{n_features}-k{n_clusters}"
    missing = (
        f"the package has {', '.join(available())}; train the missing one with "
        f"'lloydformer train -d {n_features} -k {n_clusters} --output {name}' and pass "
        f"pretrained='{name}/{name}.json'"
    )
    if card is None and name not in available():
        raise ValueError(
            f"pretrained: found no weights for {n_features} features and {n_clusters} "
            f"clusters; {missing}"
        )
    trained = load_from_card(card or read_card(name))
    s = trained.settings
    if s.n_features != n_features or (s.codes is not None and s.n_clusters != n_clusters):
        raise ValueError(
            f"pretrained: {trained.name} is for {s.n_features} features and {s.n_clusters} "
            f"clusters, and found {n_features} and {n_clusters}; {missing}"
        )
    return trained
