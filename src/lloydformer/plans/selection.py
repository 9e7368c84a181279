"""The smallest radius of each cluster that holds a given mass, found exactly in a few rounds.

Squared distances are not negative, so their bit patterns are in the order of their values. Each
round counts masses by the next eight bits among the points that share the bits found so far.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.accumulate import add_by_label
from lloydformer.plans.session import Adding, Columns, PointBlock, Session

_DIGIT = 8
_INTEGERS = {torch.float32: torch.int32, torch.float64: torch.int64}
_BITS = {torch.float32: 32, torch.float64: 64}


def holding(masses: Tensor, keep: float) -> Tensor:
    """A fraction of each mass, less 1e-12 of it, so that rounding does not add a point."""
    return keep * masses * (1 - 1e-12)


@dataclass(frozen=True)
class Histogram(Adding):
    """Masses by cluster and next digit, (k, 256), of the points whose bits begin with the prefix.

    Precondition: `Measure` has run; reads labels and distances.
    """

    prefix: Tensor
    shift: int

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor, ...]:
        labels = block.labels.long()
        bits = block.distances.view(_INTEGERS[block.distances.dtype]).long() >> self.shift
        agree = (bits >> _DIGIT) == self.prefix[labels]
        slots = (labels << _DIGIT) + (bits & ((1 << _DIGIT) - 1))
        weights = agree.double() if block.weights is None else agree * block.weights.double()
        size = len(self.prefix) << _DIGIT
        return (add_by_label(weights, slots, size).view(-1, 1 << _DIGIT),)


def radii(session: Session, targets: Tensor, dtype: torch.dtype) -> Tensor:
    """The smallest squared radii (k,) within which a cluster's mass reaches its target."""
    prefix = torch.zeros(len(targets), dtype=torch.long, device=targets.device)
    missing = targets.clone()
    for shift in range(_BITS[dtype] - _DIGIT, -1, -_DIGIT):
        (histogram,) = session.fold(Histogram(prefix, shift))
        reached = histogram.cumsum(dim=1)
        digit = (reached < missing[:, None]).sum(dim=1).clamp(max=(1 << _DIGIT) - 1)
        before = reached.gather(1, digit[:, None]) - histogram.gather(1, digit[:, None])
        missing = missing - before[:, 0]
        prefix = (prefix << _DIGIT) + digit
    return prefix.to(_INTEGERS[dtype]).view(dtype)
