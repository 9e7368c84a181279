"""Any recipe as an estimator: lowered where possible, literal otherwise."""

from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.engines.chunked import Chunked, State
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.starts import Starts
from lloydformer.objectives import kmeans_objective
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import LoweringError, lower
from lloydformer.plans.means import Means
from lloydformer.solve import Result


class CircuitClusterer(Clusterer):
    """The algorithm of any recipe (None is `lloyd()`).

    A recipe that lowers runs as folds over blocks. One that does not runs as the literal circuit,
    `max_iter` layers deep, in time and memory that grow with n^2; `lowered_` says which it was.
    Recipes with a norm see the rows as unit vectors.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "recipe": [None, Recipe],
    }

    def __init__(
        self,
        n_clusters: int | Any = 8,
        *,
        recipe: Recipe | Any | None = None,
        init: Any = "k-means++",
        n_init: Any = "auto",
        max_iter: int | Any = 300,
        tol: float | Any = 1e-4,
        verbose: int | Any = 0,
        random_state: Any = None,
        empty: str | Any = "farthest",
        engine: str | Any = "auto",
        device: Any = None,
        callback: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.recipe = recipe
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

    def recipe_(self) -> Recipe:
        return self.recipe or recipes.lloyd()

    @property
    def _directions(self) -> bool:  # type: ignore[override]
        return self.recipe_().norm is not None

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        try:
            return super()._plan(rng)
        except LoweringError:
            return Means(directions=self._directions)  # a literal circuit's centers label as these

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "CircuitClusterer":
        """Cluster the rows of X by the recipe."""
        try:
            lower(self.recipe_())
            self.lowered_ = True
            super().fit(X, sample_weight=sample_weight)
        except LoweringError as reason:
            if sample_weight is not None:
                raise ValueError(f"sample_weight: literal circuits have none; {reason}") from None
            self.lowered_ = False
            self._fit_literally(X)
        return self

    def _fit_literally(self, X: Any) -> None:
        source = self._read(X, reset=True)
        blocks = source.blocks
        self._check_size(blocks)
        rng = check_random_state(self.random_state)
        starts = Starts(self, X, blocks, rng)
        state = State.of(blocks)
        points = blocks.take(torch.arange(blocks.n_rows, device=blocks.device))
        with Chunked().over(blocks, state) as run:
            tried = [self._deepen(points, c, rng) for c in starts(run, state)]
        self._keep(min(tried, key=lambda result: result.inertia), source)

    def _deepen(self, points: Tensor, centers: Tensor, rng: np.random.RandomState) -> Result:
        """All layers, and one more for the labels of the last centers."""
        circuit = Circuit(self.recipe_(), points.shape[1], self.n_clusters)
        seed = int(rng.randint(2**31 - 1))
        trace = circuit(points, centers.to(points.dtype), self.max_iter + 1, seed=seed)
        last = trace.centers[-2]
        objective = trace.objective[:-1].tolist()
        inertia = kmeans_objective(points, last).item()
        return Result(last.double(), trace.labels[-1].int(), inertia, tuple(objective))
