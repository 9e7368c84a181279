"""Estimators with an inverse temperature, which may come from the spread of the data."""

from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

from torch import Tensor

from lloydformer.estimators.base import Clusterer, Preparation, Prepared
from lloydformer.estimators.parameter_checks import Interval, StrOptions
from lloydformer.estimators.source import Source
from lloydformer.plans.contract import Plan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.session import Session
from lloydformer.plans.soft import SoftPlan
from lloydformer.solving.driver import Result


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
        """Return the inverse temperature for "scale".

        It is measured around the centers that a few iterations reach from `starts`
        (`solving/scale.py`).
        """
        raise NotImplementedError

    @property
    def _gamma(self) -> float:
        """The fitted inverse temperature; models saved by version 0.1 have only the parameter."""
        fitted = getattr(self, "inverse_temperature_", None)
        if fitted is not None:
            return fitted
        # The fit has not found the scale yet, and replaces this number in its plan (`_prepare`).
        return 1.0 if isinstance(self.inverse_temperature, str) else float(self.inverse_temperature)

    def _prepare(self, opened: Preparation) -> Prepared:
        plan, restarts, algorithm = super()._prepare(opened)
        if isinstance(self.inverse_temperature, str):
            # The scale is measured around the initial centers, so all of them are drawn now.
            starts = list(restarts.centers)
            gamma = self._scale(opened.session, starts)
            restarts = replace(restarts, centers=iter(starts))
        else:
            gamma = float(self.inverse_temperature)
        assert isinstance(plan, SoftPlan | RobustPlan)
        return replace(plan, inverse_temperature=gamma), restarts, algorithm

    def _store(self, result: Result, source: Source, plan: Plan) -> None:
        # Together with the centers: a fit that fails leaves both as they were. And before them:
        # the warning about fewer clusters reads it.
        assert isinstance(plan, SoftPlan | RobustPlan)
        self.inverse_temperature_ = plan.inverse_temperature
        super()._store(result, source, plan)

    def _describe_fewer_clusters(self, count: int) -> str | None:
        # Centers that coincide may have points each, and yet they are one cluster.
        n_distinct = min(count, int(self.n_clusters) - self._n_coinciding())
        if n_distinct == self.n_clusters:
            return None
        scaled = isinstance(self.inverse_temperature, str)
        other = "another number" if scaled else '"scale" or another number'
        return (
            f"Number of distinct clusters ({n_distinct}) found smaller than n_clusters "
            f"({self.n_clusters}). Possibly due to duplicate points in X, or because centers "
            f"coincide at inverse_temperature={self.inverse_temperature_:.3g}: try {other} (for "
            "SoftKMeans a larger one)."
        )

    def _n_coinciding(self) -> int:
        """Return the number of centers that coincide with an earlier one."""
        return 0
