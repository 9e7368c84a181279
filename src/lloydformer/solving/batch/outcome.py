"""What a batch of fits leads to."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lloydformer.solving.rules import is_better


@dataclass(frozen=True)
class BatchOutcome:
    """The results of b problems, in float64.

    trimmed: points that are left out; None in plans that do not trim.
    """

    centers: Float[Tensor, "b k d"]
    labels: Int[Tensor, "b n"]
    inertia: Float[Tensor, " b"]
    n_iter: Int[Tensor, " b"]
    trimmed: Bool[Tensor, "b n"] | None

    def or_better(self, other: "BatchOutcome") -> "BatchOutcome":
        """For each problem the other outcome, if it is better than this one."""
        wins = is_better(other.inertia, self.inertia)

        def choose(a: Any, b: Any) -> Any:
            if a is None:
                return None
            return torch.where(wins.view(-1, *[1] * (a.ndim - 1)), b, a)

        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return BatchOutcome(*(choose(a, b) for a, b in pairs))


def joined(parts: list[BatchOutcome]) -> BatchOutcome:
    """Outcomes of neighbouring problems, in one."""

    def cat(column: Any) -> Any:
        return None if column[0] is None else torch.cat(column)

    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return BatchOutcome(*(cat(column) for column in columns))
