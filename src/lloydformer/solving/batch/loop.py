"""The loop for many problems: each stops by its own rule and leaves the batch when it does."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lloydformer.plans.contract import Plan
from lloydformer.solving.batch.steps import Problems, Step, inertia, own_distances, step


@dataclass(frozen=True)
class Found:
    """Centers (b, k, d) around the origins, labels (b, n), inertia (b,), iterations (b,)."""

    centers: Tensor
    labels: Tensor
    inertia: Tensor
    n_iter: Tensor


def descend(
    plan: Plan, problems: Problems, centers: Tensor, tolerance: Tensor, max_iter: int
) -> Found:
    """All problems from their starts to their ends."""
    b = len(centers)
    centers, n_iter = centers.clone(), torch.full((b,), max_iter, device=centers.device)
    active = torch.arange(b, device=centers.device)
    held, before = problems, torch.full_like(problems.weights, torch.iinfo(torch.int32).min).long()
    best = _Best(plan, centers)
    for iteration in range(max_iter):
        result = step(plan, held, centers[active], iteration)
        best.see(problems, centers, result.labels)
        moved = _placed(plan, held, result, centers[active])
        shift = (moved - centers[active]).square().sum(dim=(1, 2))
        centers[active] = moved
        done = _settled(plan, held, result.labels, before, shift, tolerance[active])
        n_iter[active[done]] = iteration + 1
        if done.all():
            break
        active, held, before = active[~done], held[~done], result.labels[~done]
    labels = step(plan, problems, centers, 0).labels
    best.see(problems, centers, labels)
    if best.draws:
        centers, labels = best.centers, best.labels
    return Found(centers, labels, inertia(plan, problems, centers, labels), n_iter)


class _Best:
    """The best centers so far of a plan that draws them; its problems never leave the batch."""

    def __init__(self, plan: Plan, centers: Tensor) -> None:
        self.plan, self.draws = plan, plan.stops_on == "never"
        self.centers = centers.clone()
        self.labels = torch.zeros(len(centers), 1, dtype=torch.long, device=centers.device)
        self.inertia = torch.full_like(centers[:, 0, 0], torch.inf)

    def see(self, problems: Problems, centers: Tensor, labels: Tensor) -> None:
        if not self.draws:
            return
        now = inertia(self.plan, problems, centers, labels)
        better = now < self.inertia
        self.labels = (
            torch.where(better[:, None], labels, self.labels) if len(self.labels) else labels
        )
        self.centers = torch.where(better[:, None, None], centers, self.centers)
        self.inertia = torch.where(better, now, self.inertia)


def _settled(
    plan: Plan, problems: Problems, labels: Tensor, before: Tensor, shift: Tensor, tol: Tensor
) -> Tensor:
    """Labels that stay are the end; then centers that move less than the tolerance."""
    if plan.stops_on == "never":
        return torch.zeros_like(shift, dtype=torch.bool)
    stays = ((labels == before) | (problems.weights == 0)).all(dim=1)
    return (shift <= tol) | (stays if plan.stops_on == "labels" else False)


def _placed(plan: Plan, problems: Problems, result: Step, centers: Tensor) -> Tensor:
    if plan.empties != "keep" and (result.masses == 0).any():
        result = _refilled(plan, problems, result, centers)
    if plan.directions:
        norms = result.sums.norm(dim=-1, keepdim=True)
        return torch.where(norms > 0, result.sums / norms, centers)
    masses = result.masses.unsqueeze(-1)
    return torch.where(masses > 0, result.sums / masses, centers)


def _refilled(plan: Plan, problems: Problems, result: Step, centers: Tensor) -> Step:
    """Empty clusters take their problem's farthest points, by (distance, row)."""
    labels = torch.where(result.labels < 0, -1 - result.labels, result.labels)
    away = own_distances(problems, centers, labels)
    away = away.masked_fill(problems.weights <= 0, -1.0)
    sums, masses = result.sums.clone(), result.masses.clone()
    for i in (result.masses == 0).any(dim=1).nonzero()[:, 0].tolist():
        lost = (result.masses[i] == 0).nonzero()[:, 0]
        rows = away[i].sort(descending=True, stable=True).indices[: len(lost)]
        rows = rows[away[i][rows] > 0]
        weights = problems.weights[i, rows]
        points = problems.points[i, rows] * weights[:, None]
        if plan.empties == "move":
            sums[i].index_add_(0, labels[i, rows], -points)
            masses[i].index_add_(0, labels[i, rows], -weights)
        sums[i, lost[: len(rows)]], masses[i, lost[: len(rows)]] = points, weights
    return replace(result, sums=sums, masses=masses)
