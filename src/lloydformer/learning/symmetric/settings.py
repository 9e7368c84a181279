"""Settings of training symmetric layers: those that runs share, and those of a single run."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from lloydformer.learning.symmetric.layer import RANGES
from lloydformer.numerics.checks import require


class Shape(NamedTuple):
    """Tasks of one update: their number and sizes, and the number of unrolled steps."""

    n_tasks: int
    n_points: int
    n_clusters: int
    n_steps: int
    n_features: int = 64


# The shapes that updates cycle through: few and many clusters, with few and many points, some of
# them in many dimensions. Chosen by hand.
SHAPES = (
    Shape(32, 512, 10, 10),
    Shape(32, 256, 3, 8),
    Shape(32, 1024, 10, 10),
    Shape(16, 512, 30, 10),
    Shape(32, 512, 5, 10),
    Shape(32, 512, 10, 16),
    Shape(16, 1024, 60, 8),
    Shape(32, 512, 10, 10),
    Shape(16, 512, 10, 10, 512),
    Shape(32, 512, 20, 10),
    Shape(16, 1024, 30, 10, 256),
    Shape(32, 128, 2, 6),
    Shape(16, 1024, 10, 20),
    Shape(16, 1024, 100, 8, 256),
    Shape(32, 512, 10, 10),
    Shape(16, 128, 80, 8),
)


@dataclass(frozen=True)
class SymmetricRun:
    """Settings of one run.

    The defaults are those of the weights in the package.

    Attributes
    ----------
    seed : int
        Seed of the initial weights.
    n_heads : int
        Number of decoder cross-attention heads.
    learning_rate : float
        Largest learning rate.
    evenness : float
        A task's weight is s^-evenness, with s the deviation of Lloyd's log objective over starts.
        At 0 tasks whose result depends on the start dominate.
    bounded : bool
        Reduce the weight of a task the more its objective ends above that of the start.
    without : str
        Name of an invariant that the run does not use, for ablations.
    """

    seed: int = 0
    n_heads: int = 4
    learning_rate: float = 0.003
    evenness: float = 0.5
    bounded: bool = False
    without: str = ""

    def __post_init__(self) -> None:
        if self.seed < 0 or self.n_heads < 1:
            raise ValueError(f"found {self}; pass a seed of 0 or more, and n_heads of 1 or more")
        positive = 0 < self.learning_rate < math.inf
        require(positive, "learning_rate", self.learning_rate, "pass a positive finite number")
        known = not self.without or self.without in RANGES
        require(known, "without", self.without, f"pass one of {', '.join(RANGES)}")


@dataclass(frozen=True)
class SymmetricSettings:
    """Settings that runs trained together share.

    The defaults are those of the weights in the package, except for `n_updates`: they had 6,500.

    Attributes
    ----------
    seed : int
        Seed of the tasks, which all runs share.
    n_updates : int
        Number of updates of the weights.
    n_apart : int
        Number of decoder self-attention heads.
    clip : float
        Upper bound of the norm of a gradient.
    earlier : float
        Weight of the mean objective of all steps but the last.
    warm_up : int
        Updates over which the learning rate rises; then it falls to 0 as a cosine.
    shapes : tuple of Shape
        The shapes of tasks that updates cycle through.
    evaluate_every : int
        Updates between reports of the mean loss.
    """

    seed: int = 0
    n_updates: int = 10_000
    n_apart: int = 2
    clip: float = 0.1
    earlier: float = 0.2
    warm_up: int = 50
    shapes: tuple[Shape, ...] = SHAPES
    evaluate_every: int = 320

    def __post_init__(self) -> None:
        if min(self.n_updates, self.n_apart, self.warm_up, self.evaluate_every) < 1:
            raise ValueError(
                f"found {self}; n_updates, n_apart, warm_up and evaluate_every must be 1 or more"
            )
        if not self.shapes:
            raise ValueError("shapes: found none; pass at least one Shape")

    def rate(self, update: int) -> float:
        """Return the factor of the learning rate in an update."""
        rising = min(1.0, (update + 1) / self.warm_up)
        return rising * (1 + math.cos(math.pi * update / self.n_updates)) / 2

    @classmethod
    def read(cls, found: dict[str, Any]) -> "SymmetricSettings":
        """Build settings from the JSON of `dataclasses.asdict`."""
        return cls(**{**found, "shapes": tuple(Shape(*shape) for shape in found["shapes"])})
