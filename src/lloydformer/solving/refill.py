"""Empty clusters: what becomes of a center that has lost its points."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.plans.assign import Farthest
from lloydformer.plans.contract import Plan, Run, Step
from lloydformer.plans.trimmed import untrim_


@dataclass(frozen=True)
class Refill:
    """policy "farthest" gives it the point that is farthest from its center, as scikit-learn does;
    "keep" leaves it where it is; "error" raises."""

    policy: str
    plan: Plan
    data: Blocks
    labels: Tensor

    def place(self, run: Run, step: Step, centers: Tensor) -> Tensor:
        """The new centers of a step, with empty clusters seen to."""
        lost = (step.masses == 0).nonzero()[:, 0]
        if len(lost) == 0 or self.policy == "keep" or self.plan.empties == "keep":
            return self.plan.place(step, centers)
        if self.policy == "error":
            raise ValueError(
                f"n_clusters: cluster {int(lost[0])} has lost all its points; use fewer clusters, "
                'another init, or empty="farthest"'
            )
        return self.plan.place(self._filled(run, step, centers, lost), centers)

    def _filled(self, run: Run, step: Step, centers: Tensor, lost: Tensor) -> Step:
        """The step with the farthest points, by (distance, row), in the empty clusters."""
        own = untrim_(self.labels)  # trimmed points too
        away, rows = run(Farthest(centers.to(self.data.dtype), len(lost)))
        rows, lost = rows[away > 0], lost[: int((away > 0).sum())]
        points, weights = self.data.take(rows).double(), self._weights(rows)
        sums, masses = step.sums.clone(), step.masses.clone()
        if self.plan.empties == "move":
            sums.index_add_(0, own[rows].long(), -points * weights[:, None])
            masses.index_add_(0, own[rows].long(), -weights)
        sums[lost], masses[lost] = points * weights[:, None], weights
        return replace(step, sums=sums, masses=masses)

    def _weights(self, rows: Tensor) -> Tensor:
        weights = [self.data.weights(int(r), int(r) + 1) for r in rows]
        return torch.tensor(
            [1.0 if w is None else w.item() for w in weights],
            dtype=torch.float64,
            device=rows.device,
        )
