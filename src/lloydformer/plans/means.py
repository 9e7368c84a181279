"""Lloyd's algorithm and spherical k-means: one fold of sums and counts."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lloydformer.plans.assign import Cosines, Measure, Nearest
from lloydformer.plans.contract import Block, Final, Plain, Run, Step


@dataclass(frozen=True)
class Iterations:
    """Lloyd's iterations to their end, in one call; None from an engine that has no such call.

    What comes back are centers, and of every step the objective, less the sum of w |x|^2.
    """

    centers: Tensor
    tolerance: float
    max_iter: int

    def map(self, block: Block) -> None:
        return None

    def merge(self, first: None, second: None) -> None:
        return None


@dataclass(frozen=True)
class Means(Plain):
    """Each center moves to the mean of its points.

    With `directions` the points are unit vectors and so are the means: spherical k-means, whose
    objective, the sum of w (1 - cosine), is half the sum of squared distances.
    """

    directions: bool = False
    square: float = field(default=0.0, repr=False)
    """The sum of w |x|^2, from which the objective is computed without another fold."""
    stops_on = "labels"
    empties = "move"

    def knowing(self, square: float) -> "Means":
        return replace(self, square=square)

    def step(self, run: Run, centers: Tensor, iteration: int) -> Step:
        sums, masses, changed = run(Nearest(centers))
        exact = centers.double()
        squares = (masses * torch.linalg.vecdot(exact, exact)).sum()
        inertia = self.square - 2 * (sums * exact).sum() + squares
        return Step(sums, masses, max(inertia.item(), 0.0) * self._unit, int(changed))

    def iterate(
        self, run: Run, centers: Tensor, tolerance: float, max_iter: int
    ) -> tuple[Tensor, list[float]] | None:
        found = run(Iterations(centers, tolerance, max_iter))
        if found is None:
            return None
        moved, history = found
        return moved, [max(self.square + change, 0.0) * self._unit for change in history]

    def place(self, step: Step, centers: Tensor) -> Tensor:
        if not self.directions:
            return mean(step, centers)
        norms = step.sums.norm(dim=1, keepdim=True)
        return torch.where(norms > 0, step.sums / norms, centers)

    def finish(self, run: Run, centers: Tensor) -> Final:
        squares, masses = run(Cosines(centers) if self.directions else Measure(centers))
        inertia = squares.item() * self._unit
        return Final(inertia, inertia, tuple(masses.clamp(min=0).tolist()))

    @property
    def _unit(self) -> float:
        return 0.5 if self.directions else 1.0


def mean(step: Step, centers: Tensor) -> Tensor:
    """Sums over masses; a cluster without mass has its old center."""
    masses = step.masses[:, None]
    return torch.where(masses > 0, step.sums / masses, centers)
