"""A plan's iterations by any engine, one after the other, with everything that can be compared."""

from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from lloydformer.engines.contract import State
from lloydformer.plans.contract import Final


@dataclass(frozen=True)
class Seen:
    """One iteration: what it found, where the centers went, how many points it had to look at."""

    labels: Tensor
    sums: Tensor
    masses: Tensor
    objective: float
    changed: int
    centers: Tensor
    looked_at: int


@dataclass(frozen=True)
class Course:
    """All iterations, and the last assignment."""

    seen: list[Seen]
    labels: Tensor
    final: Final

    def same_bits(self, other: "Course") -> bool:
        """Labels, centers and objectives, in every iteration and at the end."""
        pairs = zip(self.seen, other.seen, strict=True)
        return (
            all(torch.equal(a.labels, b.labels) for a, b in pairs)
            and all(
                torch.equal(a.centers, b.centers) and a.objective == b.objective
                for a, b in zip(self.seen, other.seen, strict=True)
            )
            and torch.equal(self.labels, other.labels)
            and self.final == other.final
        )


def _looked_at(run) -> int:
    """How many points the last assignment had to look at; the session is what `run` holds."""
    session = run.args[1]
    return session.kernels.looked_at()


@pytest.fixture(scope="session")
def course():
    """course(engine, data, plan, centers, n_iter) runs the plan from these centers."""

    def run_plan(engine, data, plan, centers, n_iter: int, bounds: bool = False) -> Course:
        state, seen = State.of(data), []
        state.clear()
        with engine.over(data, state) as run:
            for iteration in range(n_iter):
                step = plan.step(run, centers.to(data.dtype), iteration)
                centers = plan.place(step, centers)
                looked_at = _looked_at(run) if bounds else data.n_rows
                seen.append(
                    Seen(state.labels.clone(), step.sums, step.masses, step.objective,
                         step.changed, centers, looked_at)
                )  # fmt: skip
            final = plan.finish(run, centers.to(data.dtype))
        return Course(seen, state.labels.clone(), final)

    return run_plan
