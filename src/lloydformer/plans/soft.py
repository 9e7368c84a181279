"""Soft k-means: one fold with a running maximum, so that no cluster comes to 0/0."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.plans.assign import Measure, count_changed
from lloydformer.plans.contract import Block, Final, Plain, Run, Step, total
from lloydformer.plans.means import mean

_VANISHED = math.log(torch.finfo(torch.float64).tiny)


@dataclass(frozen=True)
class Shares:
    """Sums of p_ij x_i and p_ij, scaled by the largest log p_ij of each cluster so far.

    p_ij is the soft-max over j of -gamma |x_i - c_j|^2, times the weight of the point.
    """

    centers: Tensor
    inverse_temperature: float

    def map(self, block: Block) -> tuple[Tensor, ...]:
        exponents = -self.inverse_temperature * block.rows.scores(self.centers).double()  # (m, k)
        mass = exponents.logsumexp(dim=1, keepdim=True)
        logs = exponents - mass
        if block.weights is not None:
            logs = logs + block.weights.double().log()[:, None]
        level = logs.amax(dim=0).clamp(min=-1e300)  # (k)
        shares = (logs - level).exp()
        energy = block.rows.squared_norms().double() - mass[:, 0] / self.inverse_temperature
        block.labels.copy_(exponents.argmax(dim=1))
        changed = count_changed(block)
        block.before.copy_(block.labels)
        sums = block.rows.mixtures(shares)
        return level, sums, shares.sum(dim=0), total(energy, block.weights), changed

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        level = torch.maximum(first[0], second[0])
        one, two = (first[0] - level).exp(), (second[0] - level).exp()
        return (
            level,
            one[:, None] * first[1] + two[:, None] * second[1],
            one * first[2] + two * second[2],
            first[3] + second[3],
            first[4] + second[4],
        )


@dataclass(frozen=True)
class Soft(Plain):
    """Each center moves to the mean of all points, weighted by their shares.

    The objective is the free energy, -1/gamma times the sum of w log sum exp(-gamma d^2).
    """

    inverse_temperature: float = 1.0
    stops_on = "shift"
    empties = "keep"
    directions = False

    def step(self, run: Run, centers: Tensor, iteration: int) -> Step:
        level, sums, masses, energy, changed = run(Shares(centers, self.inverse_temperature))
        vanished = level + masses.log() < _VANISHED
        return Step(sums, masses.masked_fill(vanished, 0.0), energy.item(), int(changed))

    def place(self, step: Step, centers: Tensor) -> Tensor:
        return mean(step, centers)

    def finish(self, run: Run, centers: Tensor) -> Final:
        free_energy = self.step(run, centers, 0).objective
        return Final(run(Measure(centers))[0].item(), free_energy)
