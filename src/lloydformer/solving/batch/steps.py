"""One iteration of a plan for many small problems at once, as dense tensors (b, n, k)."""

from dataclasses import dataclass
from functools import singledispatch

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.numerics.clusters import LOWEST, log_shares, scaled_shares
from lloydformer.numerics.noise import gumbel
from lloydformer.plans.contract import NewCenters, Plan, Sums
from lloydformer.plans.means import MeansPlan
from lloydformer.plans.medoids import MedoidsPlan
from lloydformer.plans.robust import RobustPlan
from lloydformer.plans.soft import SoftPlan
from lloydformer.plans.trimmed import TrimmedPlan, target_masses


@dataclass(frozen=True)
class DenseProblems:
    """Points (b, n, d) in float64 around their origins, with weights (b, n), 0 where masked.

    seeds: random seed of each problem, for plans that draw. unit: unit of each problem's weights.
    """

    points: Float[Tensor, "b n d"]
    weights: Float[Tensor, "b n"]
    seeds: Int[Tensor, " b"]
    unit: Float[Tensor, " b"]

    @property
    def squares(self) -> Float[Tensor, "b n 1"]:
        """|x|^2 of each point, which `scores` leave out."""
        return torch.linalg.vecdot(self.points, self.points).unsqueeze(-1)

    def __getitem__(self, chosen: Tensor) -> "DenseProblems":
        return DenseProblems(*(value[chosen] for value in vars(self).values()))

    def take(self, rows: Int[Tensor, "b m"]) -> Float[Tensor, "b m d"]:
        """Return some points of each problem."""
        return self.points.gather(1, rows.unsqueeze(-1).expand(-1, -1, self.points.shape[2]))


@dataclass(frozen=True)
class Assigned:
    """One iteration: the update, its objective (b,), labels (b, n), and trimmed points (b, n)."""

    update: Sums | NewCenters
    objective: Float[Tensor, " b"]
    labels: Int[Tensor, "b n"]
    trimmed: Bool[Tensor, "b n"] | None = None


def scores(problems: DenseProblems, centers: Float[Tensor, "b k d"]) -> Float[Tensor, "b n k"]:
    """Return |c|^2 - 2 x c: squared distances less |x|^2, which does not change the nearest."""
    squares = torch.linalg.vecdot(centers, centers).unsqueeze(-2)
    return torch.baddbmm(squares, problems.points, centers.mT, alpha=-2)


def own_distances(
    problems: DenseProblems, centers: Float[Tensor, "b k d"], labels: Int[Tensor, "b n"]
) -> Float[Tensor, "b n"]:
    """Return the squared distance of each point to the center with its label, by differences."""
    d = centers.shape[-1]
    away = problems.points - centers.gather(1, labels.unsqueeze(-1).expand(-1, -1, d))
    return torch.linalg.vecdot(away, away)


def cost(
    plan: Plan,
    problems: DenseProblems,
    distances: Float[Tensor, "b n"],
    trimmed: Tensor | None = None,
) -> Float[Tensor, " b"]:
    """Return the sum of w d^2 over points that are not trimmed; half of it for directions."""
    weights = problems.weights if trimmed is None else problems.weights * ~trimmed
    total = (distances * weights).sum(dim=-1)
    return total / 2 if plan.directions else total


def _members(labels: Int[Tensor, "b n"], weights: Tensor, k: int) -> Float[Tensor, "b n k"]:
    """Return the weight of each point in its own cluster, 0 in the others."""
    own = labels.unsqueeze(-1) == torch.arange(k, device=labels.device)
    return own * weights.unsqueeze(-1)


def _sums(problems: DenseProblems, weights: Float[Tensor, "b n k"]) -> Sums:
    return Sums(weights.mT @ problems.points, weights.sum(dim=1))


@singledispatch
def assign(plan: Plan, problems: DenseProblems, centers: Tensor, iteration: int) -> Assigned:
    """Run one iteration of the plan for every problem.

    These steps repeat the folds of the plans on dense tensors, as problems are too small for blocks
    and sessions; a test compares the two.
    """
    raise ValueError(f"recipe: no batched step is known for {plan}")


@assign.register
def _means(plan: MeansPlan, problems: DenseProblems, centers: Tensor, iteration: int) -> Assigned:
    labels, distances = _nearest(problems, centers)
    own = _members(labels, problems.weights, centers.shape[1])
    return Assigned(_sums(problems, own), cost(plan, problems, distances), labels)


@assign.register
def _soft(plan: SoftPlan, problems: DenseProblems, centers: Tensor, iteration: int) -> Assigned:
    near = scores(problems, centers)
    labels = near.min(dim=-1).indices
    logs, free = log_shares(near.double(), plan.inverse_temperature)
    _, shares = scaled_shares(logs, problems.weights.double())
    energy = ((problems.squares[..., 0] + free) * problems.weights).sum(dim=-1)
    return Assigned(_sums(problems, shares.to(near.dtype)), energy.to(near.dtype), labels)


@assign.register
def _trimmed(
    plan: TrimmedPlan, problems: DenseProblems, centers: Tensor, iteration: int
) -> Assigned:
    labels, distances = _nearest(problems, centers)
    own = _members(labels, problems.weights, centers.shape[1])  # (b, n, k)
    # Sorted once for all clusters; `own` is 0 for points of others, which the running sums skip.
    ordered, order = distances.sort(dim=-1)
    reached = own.gather(1, order.unsqueeze(-1).expand_as(own)).cumsum(dim=1)
    count = (reached < target_masses(reached[:, -1:], plan.keep)).sum(dim=1)  # (b, k)
    squared_radii = ordered.gather(1, count.clamp(max=ordered.shape[1] - 1))
    trimmed = distances > squared_radii.gather(1, labels)
    sums = _sums(problems, own * ~trimmed.unsqueeze(-1))
    return Assigned(sums, cost(plan, problems, distances, trimmed), labels, trimmed)


@assign.register
def _robust(plan: RobustPlan, problems: DenseProblems, centers: Tensor, iteration: int) -> Assigned:
    labels, distances = _nearest(problems, centers)
    own = _members(labels, problems.weights, centers.shape[1])  # (b, n, k)
    weights = own * _weighting(plan, distances, own, problems.unit)
    return Assigned(_sums(problems, weights), cost(plan, problems, distances), labels)


def _nearest(
    problems: DenseProblems, centers: Float[Tensor, "b k d"]
) -> tuple[Int[Tensor, "b n"], Float[Tensor, "b n"]]:
    """Return the nearest center of each point, and the squared distance to it."""
    labels = scores(problems, centers).min(dim=-1).indices
    return labels, own_distances(problems, centers, labels)


def _weighting(
    plan: RobustPlan,
    distances: Float[Tensor, "b n"],
    own: Float[Tensor, "b n k"],
    unit: Float[Tensor, " b"],
) -> Float[Tensor, "b n k"]:
    """Return each cluster's activation of -gamma d^2 for all points; callers mask those of others.

    unit: unit of each problem's weights; sparsemax and the m nearest depend on it.
    """
    gamma = torch.full_like(unit, plan.inverse_temperature)
    if plan.activation == "sparsemax":
        gamma = (gamma * unit).clamp(max=torch.finfo(gamma.dtype).max)
    z = (-gamma[:, None] * distances).clamp(min=LOWEST)
    ordered, order = z.sort(dim=-1, descending=True)
    masses = own.gather(1, order.unsqueeze(-1).expand_as(own))  # (b, n, k)
    if plan.activation == "sparsemax":
        # Sorting finds the threshold that the plan searches by Michelot's steps: tau of the m best
        # points, for the largest m whose last point is above it (Held, Wolfe and Crowder, 1974).
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
    most = (plan.m / unit)[:, None, None]
    targets = target_masses(torch.minimum(masses.sum(dim=1, keepdim=True), most), 1.0)
    count = (masses.cumsum(dim=1) < targets).sum(dim=1, keepdim=True)
    least = ordered.unsqueeze(-1).expand_as(own).gather(1, count.clamp(max=z.shape[1] - 1))
    return weights * (z.unsqueeze(-1) >= least)


@assign.register
def _medoids(
    plan: MedoidsPlan, problems: DenseProblems, centers: Tensor, iteration: int
) -> Assigned:
    near = scores(problems, centers)
    labels = near.min(dim=-1).indices
    n, k = labels.shape[1], centers.shape[1]
    rows = torch.arange(n, device=near.device)
    noise = gumbel(problems.seeds, iteration, "decoder_cross", k, rows)  # (b, k, n)
    perturbed = noise.mT - near - problems.squares + problems.weights.log().unsqueeze(-1)
    strange = labels.unsqueeze(-1) != torch.arange(k, device=labels.device)
    if plan.separation is None:
        owned = (~strange & (perturbed > -torch.inf)).any(dim=1, keepdim=True)
        perturbed = perturbed.masked_fill(strange & owned, -torch.inf)
    else:
        perturbed = perturbed - 2 * plan.separation * strange.double()
    drawn = perturbed.argmax(dim=1)  # (b, k)
    objective = cost(plan, problems, own_distances(problems, centers, labels))
    return Assigned(NewCenters(problems.take(drawn), drawn), objective, labels)
