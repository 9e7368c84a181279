"""Randomised k-medoids."""

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.recipe import Recipe
from lloydformer.data.blocks import TensorBlocks
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.registry import RegisteredAlgorithm, register
from lloydformer.estimators.source import Source
from lloydformer.solving.rules import Rules
from lloydformer.solving.solve import Result


class KMedoids(Clusterer):
    r"""Randomised k-medoids (alg:rnd-kmeds): centers are points of the data, drawn anew each time.

    Each center moves to a point drawn with probability
    $\propto w_i \exp(-\lVert x_i - c_j \rVert^2 - 2\delta\, 1[a_i \ne j])$, $\delta$ =
    `separation`. The best medoids seen are kept; `return_last=True` gives the last ones drawn,
    as in the paper. It stops after `max_iter` draws, or after `patience` draws without a better
    one. The draws depend on the scale of the data: distances of about 1 make them neither blind
    nor greedy. `medoid_indices_` are the rows of the medoids; `best_objective_history_` is the best
    objective so far beside `objective_history_`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{k: v for k, v in Clusterer._parameter_constraints.items() if k not in ("tol", "empty")},
        "separation": [None, Interval(Real, 0, None, closed="left")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "return_last": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        separation: float | Any | None = 100.0,
        patience: int | Any | None = None,
        return_last: bool | Any = False,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        verbose: int | Any = 0,
        random_state: Any = None,
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
        warm_start: bool | Any = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.separation = separation
        self.patience = patience
        self.return_last = return_last
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state
        self.engine = engine
        self.device = device
        self.callback = callback
        self.warm_start = warm_start

    def _recipe(self) -> Recipe:
        return recipes.medoids(None if self.separation is None else float(self.separation))

    def _rules(self) -> Rules:
        return Rules(
            int(self.max_iter),
            patience=self.patience,
            return_last=self.return_last,
            empty="keep",
        )

    def _keep(self, result: Result, source: Source) -> None:
        super()._keep(result, source)
        rows = result.outcome.rows
        assert rows is not None
        assert isinstance(source.blocks, TensorBlocks)
        self.cluster_centers_ = source.out(source.blocks.points[rows])  # to the last bit
        self.medoid_indices_ = source.out(rows)
        self.best_objective_history_ = np.minimum.accumulate(self.objective_history_)


register(
    RegisteredAlgorithm(
        name="medoids",
        estimator=KMedoids,
        recipe=recipes.medoids,
        oracle=algorithms.Medoids,
        summary="centers that are points of the data",
    )
)
