"""Removal of centers: folds of the second nearest centers, and the cost of each removal."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.accumulate import add_by_label
from lloydformer.numerics.means import means_or
from lloydformer.plans.assign import masses_of
from lloydformer.plans.session import Adding, Columns, PointBlock, Session

CANDIDATES = 64
"""Number of centers of least utility that are tried for removal; bounds the memory."""


@dataclass(frozen=True)
class TwoNearest(Adding):
    """Store the nearest and the second nearest center of each point.

    For each cluster: sums, mass, and utility, the sum of w (s - r): by how much the objective
    would grow if its points had to go to their second nearest centers.
    """

    centers: Tensor

    writes: ClassVar[Columns] = ("labels", "second")

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, scores = len(self.centers), block.rows.scores(self.centers)
        first = scores.min(dim=1)
        labels = first.indices
        second = scores.scatter_(1, labels[:, None], torch.inf).min(dim=1)
        block.labels.copy_(labels)
        block.second.copy_(second.indices)
        useful = (second.values - first.values).double()
        if block.weights is not None:
            useful = useful * block.weights
        sums = block.rows.sums(labels, k, block.weights)
        return sums, masses_of(labels, block.weights, k), add_by_label(useful, labels, k)


@dataclass(frozen=True)
class Parted(Adding):
    """Sums (q, k, d) and masses (q, k) of some clusters' points, by second nearest center.

    Precondition: `TwoNearest` has run; reads labels and second.
    """

    candidates: Tensor
    n_clusters: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        k, q = self.n_clusters, len(self.candidates)
        place = torch.full((k,), q, device=self.candidates.device)  # the last one is not looked at
        place[self.candidates] = torch.arange(q, device=place.device)
        pairs = place[block.labels.long()] * k + block.second.long()
        kept = pairs < q * k
        weights = kept.double() if block.weights is None else kept * block.weights.double()
        pairs = pairs.clamp(max=q * k - 1)
        sums = block.rows.sums(pairs, q * k, weights)
        return sums.view(q, k, -1), add_by_label(weights, pairs, q * k).view(q, k)


def prune(session: Session, centers: Tensor, tie: float = 0.0) -> Tensor:
    r"""The means without the center whose removal costs the least, the first one within a tie.

    Without center a, whose points with second nearest center j have mass $n_{aj}$ and mean
    $\mu_{aj}$, the objective grows by
    $\sum_j \frac{n_j n_{aj}}{n_j + n_{aj}} |\mu_{aj} - m_j|^2 - n_{aj} |\mu_{aj} - m_a|^2$.
    """
    k = len(centers)
    sums, masses, utility = session.fold(TwoNearest(centers.to(session.layout.dtype)))
    candidates = utility.sort(stable=True).indices[:CANDIDATES].sort().values
    parts, mass = session.fold(Parted(candidates, k))
    means = means_or(sums, masses, centers)
    at = parts / mass.clamp(min=torch.finfo(mass.dtype).tiny)[..., None]
    joined = (at - means).square().sum(dim=-1)
    left = (at - means[candidates, None]).square().sum(dim=-1)
    both = (mass + masses).clamp(min=torch.finfo(mass.dtype).tiny)
    costs = (masses * mass / both * joined - mass * left).sum(dim=1)
    best = int((costs <= costs.min() + tie).int().argmax())
    sums, masses = sums + parts[best], masses + mass[best]
    means = means_or(sums, masses, centers)
    keep = torch.arange(k, device=centers.device) != candidates[best]
    return means[keep]
