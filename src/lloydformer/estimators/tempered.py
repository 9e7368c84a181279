"""Estimators with an inverse temperature, which may come from the spread of the data."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.initial_centers import InitialCenters
from lloydformer.estimators.parameter_checks import Interval, StrOptions
from lloydformer.plans.contract import Plan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.session import Session
from lloydformer.plans.soft import SoftPlan
from lloydformer.solving.driver import Restarts
from lloydformer.solving.run import FitAlgorithm


class Tempered(Clusterer):
    """Base class of estimators that multiply squared distances by an inverse temperature.

    See Also
    --------
    SoftKMeans : Shares of points in clusters.
    RobustKMeans : Weights of points within their cluster.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.SoftKMeans(1).fit([[0.0], [2.0]]).inverse_temperature_
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Clusterer._parameter_constraints,
        "inverse_temperature": [
            StrOptions({"scale"}),
            Interval(Real, 0, None, closed="neither"),
        ],
    }

    inverse_temperature: float | str | Any

    def _scale(self, session: Session, starts: list[Tensor]) -> float:
        """The inverse temperature that suits the spread of the data."""
        raise NotImplementedError

    @property
    def _gamma(self) -> float:
        """The fitted inverse temperature; models of 0.1 have only the parameter."""
        fitted = getattr(self, "inverse_temperature_", None)
        if fitted is not None:
            return fitted
        return 1.0 if isinstance(self.inverse_temperature, str) else float(self.inverse_temperature)

    def _prepare(
        self,
        initial: InitialCenters,
        blocks: Blocks,
        session: Session,
        rng: np.random.RandomState,
        deadline: float,
    ) -> tuple[Plan, Restarts, FitAlgorithm]:
        plan, restarts, algorithm = super()._prepare(initial, blocks, session, rng, deadline)
        if isinstance(self.inverse_temperature, str):
            starts = list(restarts.centers)
            self.inverse_temperature_ = self._scale(session, starts)
            restarts = replace(restarts, centers=iter(starts))
        else:
            self.inverse_temperature_ = float(self.inverse_temperature)
        assert isinstance(plan, SoftPlan | RobustPlan)
        plan = replace(plan, inverse_temperature=self.inverse_temperature_)
        return plan, restarts, algorithm

    def _describe_fewer_clusters(self, count: int) -> str | None:
        apart = min(count, int(self.n_clusters) - self._n_coinciding())
        if apart == self.n_clusters:
            return None
        scaled = isinstance(self.inverse_temperature, str)
        other = "another number" if scaled else '"scale" or another number'
        return (
            f"Number of distinct clusters ({apart}) found smaller than n_clusters "
            f"({self.n_clusters}). Possibly due to duplicate points in X, or centers coincide with "
            f"inverse_temperature={self.inverse_temperature_:.3g}: pass {other}, for soft k-means "
            "a larger one."
        )

    def _n_coinciding(self) -> int:
        """Number of centers that lie on one before them, as far as the algorithm can tell."""
        return 0
