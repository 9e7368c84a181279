"""How a symmetric layer is trained: what runs share, and what each has alone."""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from lloydformer.learning.symmetric.numbers import RANGES


class Shape(NamedTuple):
    """Tasks of one update: how many, their size, and the steps that are unrolled on them."""

    n_tasks: int
    n_points: int
    n_clusters: int
    n_steps: int
    n_features: int = 64


SHAPES = (
    Shape(32, 512, 10, 10), Shape(32, 256, 3, 8), Shape(32, 1024, 10, 10), Shape(16, 512, 30, 10),
    Shape(32, 512, 5, 10), Shape(32, 512, 10, 16), Shape(16, 1024, 60, 8), Shape(32, 512, 10, 10),
    Shape(16, 512, 10, 10, 512), Shape(32, 512, 20, 10), Shape(16, 1024, 30, 10, 256),
    Shape(32, 128, 2, 6), Shape(16, 1024, 10, 20), Shape(16, 1024, 100, 8, 256),
    Shape(32, 512, 10, 10), Shape(16, 128, 80, 8),
)  # fmt: skip
"""What updates go through in turn: few clusters and many, of one point and of hundreds."""


@dataclass(frozen=True)
class SymmetricRun:
    """What one run has alone.

    seed: of the first weights. evenness: tasks weigh the deviation of Lloyd's log objective to
    the power of minus this: at 0 those count most where the start decides. bounded: a task that
    ends above its start weighs less the farther above it ends. without: an invariant that the
    run does not know, to see what it is worth.
    """

    seed: int = 0
    n_heads: int = 4
    learning_rate: float = 0.003
    evenness: float = 0.5
    bounded: bool = False
    without: str = ""

    def __post_init__(self) -> None:
        if self.seed < 0 or self.n_heads < 1:
            raise ValueError(f"found {self}; a run has a seed from 0 and n_heads from 1")
        if not 0 < self.learning_rate < math.inf:
            found = self.learning_rate
            raise ValueError(f"learning_rate: found {found!r}; pass a positive finite number")
        if self.without and self.without not in RANGES:
            raise ValueError(f"without: found {self.without!r}; pass one of {', '.join(RANGES)}")


@dataclass(frozen=True)
class SymmetricSettings:
    """What runs that are trained together share.

    seed: of the tasks, the same for all. clip: the greatest norm of a gradient. earlier: what the
    steps before the last weigh together. The learning rate rises for warm_up updates and goes
    down to 0 as a cosine.
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
                f"found {self}; n_updates, n_apart, warm_up and evaluate_every are above 0"
            )
        if not self.shapes:
            raise ValueError("shapes: found none; pass at least one Shape")

    def rate(self, update: int) -> float:
        """The part of its learning rate that a run has in an update."""
        rising = min(1.0, (update + 1) / self.warm_up)
        return rising * (1 + math.cos(math.pi * update / self.n_updates)) / 2

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return {**asdict(self), "shapes": [list(shape) for shape in self.shapes]}

    @classmethod
    def read(cls, found: dict[str, Any]) -> "SymmetricSettings":
        """What `written` gave."""
        return cls(**{**found, "shapes": tuple(Shape(*shape) for shape in found["shapes"])})
