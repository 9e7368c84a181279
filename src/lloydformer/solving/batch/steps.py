"""One iteration of a plan for many small problems at once, as dense tensors (b, n, k)."""

from dataclasses import dataclass
from functools import singledispatch

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.numerics.noise import gumbel
from lloydformer.plans.contract import Plan
from lloydformer.plans.means import Means
from lloydformer.plans.medoids import Medoids
from lloydformer.plans.robust import Robust
from lloydformer.plans.selection import holding
from lloydformer.plans.soft import Soft
from lloydformer.plans.trimmed import Trimmed


@dataclass(frozen=True)
class Problems:
    """Points (b, n, d) in float64 around their origins, with weights (b, n), 0 where masked."""

    points: Float[Tensor, "b n d"]
    weights: Float[Tensor, "b n"]
    seeds: Int[Tensor, " b"]

    def __getitem__(self, chosen: Tensor) -> "Problems":
        return Problems(self.points[chosen], self.weights[chosen], self.seeds[chosen])


@dataclass(frozen=True)
class Step:
    """Sums, masses and labels of one iteration; labels of trimmed points are -1 - label."""

    sums: Float[Tensor, "b k d"]
    masses: Float[Tensor, "b k"]
    labels: Int[Tensor, "b n"]


def scores(problems: Problems, centers: Float[Tensor, "b k d"]) -> Float[Tensor, "b n k"]:
    """|c|^2 - 2 x c: squared distances, less |x|^2."""
    squares = torch.linalg.vecdot(centers, centers).unsqueeze(-2)
    return torch.baddbmm(squares, problems.points, centers.mT, alpha=-2)


def own_distances(
    problems: Problems, centers: Float[Tensor, "b k d"], labels: Int[Tensor, "b n"]
) -> Float[Tensor, "b n"]:
    """The squared distance of each point to the center with its label."""
    d = centers.shape[-1]
    away = problems.points - centers.gather(1, labels.unsqueeze(-1).expand(-1, -1, d))
    return torch.linalg.vecdot(away, away)


def inertia(
    plan: Plan, problems: Problems, centers: Float[Tensor, "b k d"], labels: Int[Tensor, "b n"]
) -> Float[Tensor, " b"]:
    """What users compare: the sum over points that are not trimmed; on the sphere, half of it."""
    distances = own_distances(problems, centers, torch.where(labels < 0, -1 - labels, labels))
    total = (distances * problems.weights * (labels >= 0)).sum(dim=-1)
    return total / 2 if plan.directions else total


def _members(labels: Int[Tensor, "b n"], weights: Tensor, k: int) -> Float[Tensor, "b n k"]:
    """The weight of each point in its own cluster, 0 in the others."""
    own = labels.unsqueeze(-1) == torch.arange(k, device=labels.device)
    return own * weights.unsqueeze(-1)


def _summed(problems: Problems, weights: Float[Tensor, "b n k"], labels: Tensor) -> Step:
    return Step(weights.mT @ problems.points, weights.sum(dim=1), labels)


@singledispatch
def step(plan: Plan, problems: Problems, centers: Tensor, iteration: int) -> Step:
    """One iteration of the plan for every problem."""
    raise ValueError(f"recipe: no batched step is known for {plan}")


@step.register
def _means(plan: Means, problems: Problems, centers: Tensor, iteration: int) -> Step:
    labels = scores(problems, centers).min(dim=-1).indices
    return _summed(problems, _members(labels, problems.weights, centers.shape[1]), labels)


@step.register
def _soft(plan: Soft, problems: Problems, centers: Tensor, iteration: int) -> Step:
    near = scores(problems, centers)
    labels = near.min(dim=-1).indices
    shares = (-plan.inverse_temperature * near).softmax(dim=-1) * problems.weights.unsqueeze(-1)
    return _summed(problems, shares, labels)


@step.register
def _trimmed(plan: Trimmed, problems: Problems, centers: Tensor, iteration: int) -> Step:
    labels = scores(problems, centers).min(dim=-1).indices
    distances = own_distances(problems, centers, labels)
    own = _members(labels, problems.weights, centers.shape[1])  # (b, n, k)
    ordered, order = distances.sort(dim=-1)
    reached = own.gather(1, order.unsqueeze(-1).expand_as(own)).cumsum(dim=1)
    count = (reached < holding(reached[:, -1:], plan.keep)).sum(dim=1)  # (b, k)
    radius = ordered.gather(1, count.clamp(max=ordered.shape[1] - 1))
    kept = distances <= radius.gather(1, labels)
    return _summed(problems, own * kept.unsqueeze(-1), torch.where(kept, labels, -1 - labels))


@step.register
def _robust(plan: Robust, problems: Problems, centers: Tensor, iteration: int) -> Step:
    labels = scores(problems, centers).min(dim=-1).indices
    distances = own_distances(problems, centers, labels)
    own = _members(labels, problems.weights, centers.shape[1])  # (b, n, k)
    weights = own * _weighting(plan, distances, own)
    return _summed(problems, weights, labels)


def _weighting(
    plan: Robust, distances: Float[Tensor, "b n"], own: Float[Tensor, "b n k"]
) -> Float[Tensor, "b n k"]:
    """Each cluster's activation of -gamma d^2, for all points; strangers are masked by `own`."""
    z = -plan.inverse_temperature * distances
    ordered, order = z.sort(dim=-1, descending=True)
    masses = own.gather(1, order.unsqueeze(-1).expand_as(own))  # (b, n, k)
    if plan.activation == "sparsemax":
        reached = masses.cumsum(dim=1)
        tau = ((masses * ordered.unsqueeze(-1)).cumsum(dim=1) - 1) / reached
        support = ((ordered.unsqueeze(-1) > tau) & (masses > 0)).sum(dim=1, keepdim=True)
        last = ((masses > 0).cumsum(dim=1) < support).sum(dim=1, keepdim=True)
        threshold = tau.gather(1, last.clamp(max=z.shape[1] - 1)).nan_to_num(0.0)
        return (z.unsqueeze(-1) - threshold).clamp(min=0)
    best = torch.where(masses > 0, ordered.unsqueeze(-1), -torch.inf).amax(dim=1, keepdim=True)
    weights = (z.unsqueeze(-1) - best).exp().nan_to_num(0.0, posinf=0.0)
    if plan.m is None:
        return weights
    targets = holding(masses.sum(dim=1, keepdim=True).clamp(max=plan.m), 1.0)
    count = (masses.cumsum(dim=1) < targets).sum(dim=1, keepdim=True)
    least = ordered.unsqueeze(-1).expand_as(own).gather(1, count.clamp(max=z.shape[1] - 1))
    return weights * (z.unsqueeze(-1) >= least)


@step.register
def _medoids(plan: Medoids, problems: Problems, centers: Tensor, iteration: int) -> Step:
    near = scores(problems, centers)
    labels = near.min(dim=-1).indices
    n, k = labels.shape[1], centers.shape[1]
    rows = torch.arange(n, device=near.device)
    noise = gumbel(problems.seeds, iteration, "decoder_cross", k, rows)  # (b, k, n)
    squares = torch.linalg.vecdot(problems.points, problems.points).unsqueeze(-1)
    perturbed = noise.mT - near - squares + problems.weights.log().unsqueeze(-1)
    strange = labels.unsqueeze(-1) != torch.arange(k, device=labels.device)
    if plan.separation is None:
        owned = (~strange & (perturbed > -torch.inf)).any(dim=1, keepdim=True)
        perturbed = perturbed.masked_fill(strange & owned, -torch.inf)
    else:
        perturbed = perturbed - 2 * plan.separation * strange.double()
    drawn = perturbed.argmax(dim=1)  # (b, k)
    points = problems.points.gather(1, drawn.unsqueeze(-1).expand(-1, -1, centers.shape[2]))
    return Step(points, torch.ones_like(points[..., 0]), labels)
