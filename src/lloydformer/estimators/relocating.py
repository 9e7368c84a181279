"""Relocating k-means."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.session import Session
from lloydformer.solving.relocations import Relocations
from lloydformer.solving.rules import Rules


class RelocatingKMeans(Clusterer):
    r"""K-means that leaves poor local minima: better centers than many starts, in less time.

    Between Lloyd's iterations, `n_moved` clusters, drawn by their error, are split in two, and
    one after the other the centers vanish whose loss costs the least. What comes of it is kept if
    it has a lower objective: $\sum_i w_i \min_j \lVert x_i - c_j \rVert^2$, as in k-means. It
    stops after `patience` relocations in a row that were not kept, or after `max_iter` layers, of
    which a relocation has 3 + `n_moved`. A split is the best of `n_draws`. With more patience
    the centers get better, and it takes longer. Relocations begin where Lloyd's algorithm ends,
    so the result is never worse than that of its iterations alone; with `rest=2`, they
    begin after two iterations, which is better where `max_iter` is small. An empty cluster keeps
    its center until a relocation takes it away.
    """

    _accepts_sparse: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k != "empty"},
        "patience": [Interval(Integral, 0, None, closed="left")],
        "n_moved": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "rest": [None, Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        patience: int | Any = 5,
        n_moved: int | Any = 5,
        n_draws: int | Any = 3,
        rest: int | Any | None = None,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 2000,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.patience = patience
        self.n_moved = n_moved
        self.n_draws = n_draws
        self.rest = rest
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

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        return MeansPlan()

    def _course(self, session: Session, rng: np.random.RandomState) -> Relocations:
        return Relocations(
            n_moved=int(self.n_moved),
            n_draws=int(self.n_draws),
            patience=int(self.patience),
            rest=None if self.rest is None else int(self.rest),
            seed=int(rng.randint(2**31 - 1)),
        )

    def _rules(self) -> Rules:
        return Rules(int(self.max_iter), float(self.tol), empty="keep")


register(
    RegisteredAlgorithm(
        name="relocating",
        estimator=RelocatingKMeans,
        recipe=recipes.relocating,
        oracle=algorithms.Relocating,
        summary="lower objectives than many starts, in less time",
    )
)
