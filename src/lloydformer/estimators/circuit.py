"""Any recipe as an estimator: lowered where possible, literal otherwise."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import LimitingSoftmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.trace import Trace
from lloydformer.data.blocks import ranges
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.source import Source
from lloydformer.estimators.starts import Starts
from lloydformer.estimators.warm import warmed
from lloydformer.numerics.checks import check_zero_sum
from lloydformer.plans.contract import Plan
from lloydformer.plans.lower import LoweringError, lower
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.session import Session
from lloydformer.solving.descent import Outcome, Progress
from lloydformer.solving.solve import Result


class CircuitClusterer(Clusterer):
    """The algorithm of any recipe (None is `lloyd()`).

    A recipe that lowers runs as folds over blocks. One that does not runs as the literal circuit,
    `max_iter` layers deep, in time and memory that grow with n^2, whatever `tol` and `empty` say;
    `lowered_` says which it was.
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
        warm_start: bool | Any = False,
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
        self.warm_start = warm_start

    def _recipe(self) -> Recipe:
        return self.recipe or recipes.lloyd()

    @property
    def _directions(self) -> bool:  # type: ignore[override]
        return self._recipe().norm is not None

    def _plan(self, rng: np.random.RandomState | None = None) -> Plan:
        """The recipe's plan; for one that does not lower, the plan that labels as it does."""
        first = replace(self._recipe().encoder_cross, activation=LimitingSoftmax("first"))
        for recipe in (self._recipe(), replace(self._recipe(), encoder_cross=first)):
            try:
                plan = lower(recipe)
            except LoweringError:
                continue
            return plan if rng is None else plan.seeded(int(rng.randint(2**31 - 1)))
        return MeansPlan(directions=self._directions)

    def _read(self, X: Any, sample_weight: Any = None, *, reset: bool) -> Source:
        source = super()._read(X, sample_weight, reset=reset)
        norm = self._recipe().norm
        if norm is not None and norm.zero_sum:
            for start, stop in ranges(source.blocks.layout):
                rows = source.blocks.read(start, stop)
                check_zero_sum("X", rows.take(torch.arange(stop - start)))
        return source

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "CircuitClusterer":
        """Cluster the rows of X by the recipe."""
        if self._recipe().free:
            raise ValueError(
                f"recipe: {self._recipe().name} leaves its weights free, and here they would be "
                "untrained; use LearnedKMeans, which has trained ones"
            )
        try:
            lower(self._recipe())
        except LoweringError as reason:
            if sample_weight is not None:
                raise ValueError(f"sample_weight: literal circuits have none; {reason}") from None
            self._fit_literally(X)
            self.lowered_ = False
            return self
        super().fit(X, sample_weight=sample_weight)
        self.lowered_ = True
        return self

    def _fit_literally(self, X: Any) -> None:
        source = self._read(X, reset=True)
        self._check_size(source.blocks)
        rng, layout = check_random_state(self.random_state), source.blocks.layout
        starts = Starts(warmed(self), X, layout, rng)
        with self._open(source.blocks) as session:
            points = session.gather(torch.arange(layout.n_rows, device=layout.device))
            tried = [
                self._finished(session, self._deepen(points, centers, number, rng))
                for number, centers in enumerate(starts(session))
            ]
        self._n_init = starts.n_starts
        self._keep(min(tried, key=lambda result: result.inertia), source)

    def _deepen(
        self, points: Tensor, centers: Tensor, number: int, rng: np.random.RandomState
    ) -> Trace:
        """All layers, each reported."""
        circuit = Circuit(self._recipe(), points.shape[1], int(self.n_clusters))
        seed = int(rng.randint(2**31 - 1))
        trace = circuit(points, centers.to(points.dtype), int(self.max_iter), seed=seed)
        if (report := self._report()) is not None:
            shifts = trace.centers.diff(dim=0).square().sum(dim=(1, 2))
            for layer, shift in enumerate(shifts.tolist()):
                report(Progress(number, layer, trace.objective[layer].item(), shift))
        return trace

    def _finished(self, session: Session, trace: Trace) -> Result:
        """Labels and inertia as in the estimator of the recipe."""
        session.forget()
        last = trace.centers[-1].double()
        final = self._plan().finish(session, last.to(session.layout.dtype))
        history = (*trace.objective[:-1].tolist(), final.objective)
        outcome = Outcome(last, final.inertia, history)
        return Result(outcome, session.labels(), session.trimmed())
