"""K-means with bounds on sizes: iterations that begin with the prices of the iteration before."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from lloydformer.plans.constrained import ConstrainedPlan
from lloydformer.plans.contract import Step
from lloydformer.solving.iterations import PlanRun, SessionProblem, as_batch
from lloydformer.solving.run import AlgorithmRun, FitContext, Outcome


@dataclass
class PricedProblem(SessionProblem):
    """The data of a session, with the prices of the last assignment.

    An assignment that begins with them takes a fraction of the time: centers have moved little, so
    few points must leave clusters that are full.
    """

    plan: ConstrainedPlan

    def step(self, centers: Tensor, iteration: int) -> Step:
        placed = self._in_precision(centers)
        step, self.plan = self.plan.step_with_prices(self.session, placed)
        assert step.changed is not None
        return Step(as_batch(step.update), step.objective[None], step.changed[None])


class BoundedRun(PlanRun):
    """The iterations of `ConstrainedPlan` from one start."""

    def make_problem(self, fit: FitContext) -> PricedProblem:
        assert isinstance(fit.plan, ConstrainedPlan)
        self._problem = PricedProblem(fit.plan, fit.session)
        return self._problem

    def finish(self, history: list[float]) -> Outcome:
        context = replace(self.fit, plan=self._problem.plan)
        return context.finish_at(self.centers, history)

    def state(self) -> Any:
        return super().state(), self._problem.plan.prices

    def restore(self, state: Any) -> None:
        before, prices = state
        super().restore(before)
        self._problem.plan = replace(self._problem.plan, prices=prices)


@dataclass(frozen=True)
class BoundedIterations:
    """The algorithm of `ConstrainedKMeans`."""

    n_starts: ClassVar[int] = 1

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        for centers in starts:
            yield BoundedRun(fit, restart, centers)
