"""Randomised k-medoids: one fold of the largest perturbed score and its row."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.noise import gumbel
from lloydformer.plans.assign import Measure, count_changed, masses_of
from lloydformer.plans.contract import Block, Final, Run, Step, total


@dataclass(frozen=True)
class Draw:
    """For each center the row with the largest score plus noise, the lowest one on ties.

    The score is -|x - c|^2 - 2 separation [another cluster's] + log w. The point itself travels
    with it.
    """

    centers: Tensor
    separation: float
    seed: int
    iteration: int

    def map(self, block: Block) -> tuple[Tensor, ...]:
        k = len(self.centers)
        scores = block.rows.scores(self.centers)
        labels = scores.min(dim=1).indices
        block.labels.copy_(labels)
        distances = scores.double() + block.rows.squared_norms().double()[:, None]  # (m, k)
        block.distances.copy_(distances.gather(1, labels[:, None])[:, 0].clamp(min=0))
        rows = torch.arange(block.start, block.start + len(labels), device=labels.device)
        noise = gumbel(self.seed, self.iteration, "decoder_cross", k, rows)  # (k, m)
        strange = labels[None, :] != torch.arange(k, device=labels.device)[:, None]
        perturbed = noise - distances.mT - 2 * self.separation * strange.double()
        if block.weights is not None:
            perturbed = perturbed + block.weights.double().log()
        best, chosen = perturbed.max(dim=1)
        changed = count_changed(block)
        block.before.copy_(block.labels)
        return (
            best,
            chosen + block.start,
            block.rows.take(chosen).double(),
            masses_of(labels, block.weights, k),
            total(block.distances, block.weights),
            changed,
        )

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        better = second[0] > first[0]
        best, row = (torch.where(better, second[i], first[i]) for i in (0, 1))
        point = torch.where(better[:, None], second[2], first[2])
        return best, row, point, *(a + b for a, b in zip(first[3:], second[3:], strict=True))


@dataclass(frozen=True)
class Closest:
    """The nearest row of each center, and its squared distance."""

    centers: Tensor

    def map(self, block: Block) -> tuple[Tensor, Tensor]:
        squares = block.rows.squared_norms()[:, None]
        away = (block.rows.scores(self.centers) + squares).min(dim=0)
        return away.values, away.indices + block.start

    def merge(
        self, first: tuple[Tensor, Tensor], second: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        closer = second[0] < first[0]
        return torch.where(closer, second[0], first[0]), torch.where(closer, second[1], first[1])


def rows_of(run: Run, data: Blocks, centers: Tensor) -> Tensor | None:
    """The rows that these centers are, or None where one of them is no row of the data."""
    _, rows = run(Closest(centers.to(data.dtype)))
    return rows if torch.equal(data.take(rows), centers.to(data.dtype)) else None


@dataclass(frozen=True)
class Drawn(Step):
    """A step whose new centers are rows of the data."""

    rows: Tensor


@dataclass(frozen=True)
class Medoids:
    """Each center moves to a point drawn near it (alg:rnd-kmeds)."""

    separation: float = 100.0
    seed: int = 0
    stops_on = "never"
    empties = "keep"
    directions = False

    def step(self, run: Run, centers: Tensor, iteration: int) -> Drawn:
        _, rows, points, _, objective, changed = run(
            Draw(centers, self.separation, self.seed, iteration)
        )
        masses = torch.ones(len(centers), dtype=torch.float64, device=centers.device)
        return Drawn(points, masses, objective.item(), int(changed), rows)

    def place(self, step: Step, centers: Tensor) -> Tensor:
        return step.sums

    def finish(self, run: Run, centers: Tensor) -> Final:
        inertia = run(Measure(centers))[0].item()
        return Final(inertia, inertia)
