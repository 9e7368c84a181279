"""A trained symmetric model as a plan: the numbers of a step from the invariants of its state."""

from dataclasses import dataclass

import torch

from lloydformer.learning.symmetric.invariants import InvariantInputs, invariants_of
from lloydformer.learning.symmetric.layer import SHARPEST
from lloydformer.learning.symmetric.model import SymmetricModel
from lloydformer.plans.symmetric import Heads, Invariants, SymmetricPlan


@dataclass(frozen=True)
class LearnedNumbers:
    """The numbers of a step, in float64."""

    model: SymmetricModel

    def __call__(self, found: Invariants) -> Heads:
        numbers, theta = self.model.numbers, self.model.theta.double()[None]
        z = invariants_of(_inputs(found), found.time)
        theta = theta.to(z)
        at = {name: part[0, 0] for name, part in numbers.at(theta, z).items()}
        h = numbers.n_heads
        at["sharpness"] = numbers.of_all("sharpness", theta, z)[0, 0].clamp(max=SHARPEST).exp()
        at["apart_sharpness"] = at["apart_sharpness"].clamp(max=SHARPEST).exp()
        at["belonging"] = at["belonging"].view(-1, h, h)
        return Heads(**at)


def _inputs(found: Invariants) -> InvariantInputs:
    def alone(value: float) -> torch.Tensor:
        return found.members.new_tensor([[value]])

    return InvariantInputs(
        alone(found.nearest), alone(found.second), alone(found.second - found.nearest),
        found.members[None, None], found.costs[None, None] * len(found.costs),
        alone(found.tail)[0],
    )  # fmt: skip


def plan_of(model: SymmetricModel, n_steps: int) -> SymmetricPlan:
    """The plan that runs so many steps of a model."""
    return SymmetricPlan(LearnedNumbers(model), max(1, n_steps))
