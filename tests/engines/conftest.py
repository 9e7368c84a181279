"""Run a plan's iterations by any engine, and record everything that tests compare."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from lloydformer.plans.contract import FinalAssignment, NewCenters, Sums, apply_update


@dataclass(frozen=True)
class Labelling:
    """Labels, and the mask of trimmed points (None if no fold has trimmed any)."""

    labels: Tensor
    trimmed: Tensor | None

    def same(self, other: "Labelling") -> bool:
        if self.trimmed is None or other.trimmed is None:
            masks = self.trimmed is other.trimmed
        else:
            masks = torch.equal(self.trimmed, other.trimmed)
        return masks and torch.equal(self.labels, other.labels)


@dataclass(frozen=True)
class Seen:
    """One iteration: its result, the new centers, the number of points that it looked at."""

    labelling: Labelling
    update: Sums | NewCenters
    objective: float
    changed: int
    centers: Tensor
    looked_at: int

    @property
    def labels(self) -> Tensor:
        return self.labelling.labels


@dataclass(frozen=True)
class Course:
    """All iterations, and the last assignment."""

    seen: list[Seen]
    labelling: Labelling
    final: FinalAssignment

    @property
    def labels(self) -> Tensor:
        return self.labelling.labels

    def same_bits(self, other: "Course") -> bool:
        """Labels, trimmed points, centers and objectives, in every iteration and at the end."""
        return (
            all(
                a.labelling.same(b.labelling)
                and torch.equal(a.centers, b.centers)
                and a.objective == b.objective
                for a, b in zip(self.seen, other.seen, strict=True)
            )
            and self.labelling.same(other.labelling)
            and self.final == other.final
        )


@pytest.fixture(scope="session")
def course():
    """course(engine, data, plan, centers, n_iter) runs the plan from these centers.

    With `bounds`, the engine is native and says how many points each iteration looked at.
    `move(step, centers)` gives the new centers; by default they are those of the plan.
    """

    def run_plan(engine, data, plan, centers, n_iter, bounds=False, move=None) -> Course:
        seen = []
        with engine.open(data) as session:
            for iteration in range(n_iter):
                step = plan.step(session, centers.to(data.layout.dtype), iteration)
                if move is None:
                    centers = apply_update(step.update, centers, plan.directions)
                else:
                    centers = move(step, centers)
                looked_at = session.points.kernels.looked_at() if bounds else data.layout.n_rows
                seen.append(
                    Seen(_labelling(session), step.update, step.objective.item(),
                         step.changed.item(), centers, looked_at)
                )  # fmt: skip
            final = plan.finish(session, centers.to(data.layout.dtype))
            return Course(seen, _labelling(session), final)

    return run_plan


def _labelling(session) -> Labelling:
    return Labelling(session.labels(), session.trimmed())
