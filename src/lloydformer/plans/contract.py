"""What a plan is made of: folds over blocks, and the step that one iteration comes to."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from lloydformer.data.rows import Rows


@dataclass(frozen=True)
class Block:
    """A leaf of the data as a fold sees it; `labels`, `before` and `distances` may be written.

    labels: each point's cluster. before: what it was in the last iteration. distances: the
    squared distance to its own center. They are views of one array over all points.
    """

    start: int
    read: Callable[[], Rows]
    weights: Tensor | None
    labels: Tensor
    before: Tensor
    distances: Tensor

    @cached_property
    def rows(self) -> Rows:
        """The points; not read for a fold that asks for the state alone."""
        return self.read()


@runtime_checkable
class Fold(Protocol):
    """A block becomes a small summary, and summaries of neighbours are merged in row order."""

    def map(self, block: Block) -> Any: ...

    def merge(self, first: Any, second: Any) -> Any: ...


Run = Callable[[Fold], Any]
"""Runs a fold over all blocks; an engine supplies it."""


class Adding:
    """Folds whose summaries are tuples of tensors that add up."""

    def merge(self, first: tuple[Tensor, ...], second: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(a + b for a, b in zip(first, second, strict=True))


P = TypeVar("P", bound="Plain")


class Plain:
    """Plans that neither need to know anything beforehand nor draw, and go step by step."""

    def knowing(self: P, square: float) -> P:
        return self

    def seeded(self: P, seed: int) -> P:
        return self

    def iterate(
        self, run: Run, centers: Tensor, tolerance: float, max_iter: int
    ) -> tuple[Tensor, list[float]] | None:
        return None


@dataclass(frozen=True)
class Step:
    """One iteration's result: sums (k, d) and masses (k,) in float64, centers being their ratio.

    objective: of the centers that it began with. changed: points whose label is another one.
    rows: those of the data that the new centers are, in plans that draw them.
    """

    sums: Tensor
    masses: Tensor
    objective: float
    changed: int
    rows: Tensor | None = None


@dataclass(frozen=True)
class Layers:
    """Some layers at once: the centers after them, and the objective of those before."""

    centers: Tensor
    objective: float
    count: int


@dataclass(frozen=True)
class Final:
    """The last assignment: what users compare, and what the plan descends.

    masses: how much each center weighs when later points are added to it; plans whose centers
    are running means know it.
    """

    inertia: float
    objective: float
    masses: tuple[float, ...] | None = None


@runtime_checkable
class Plan(Protocol):
    """A recipe, lowered.

    stops_on: "labels" for scikit-learn's rule, "shift" for the centers' alone, "never" for plans
    that draw. empties: "move" if the point that fills an empty cluster leaves its old one's sums,
    "copy" if not, "keep" if a cluster without mass keeps its center. directions: are the points
    seen as unit vectors?
    """

    @property
    def stops_on(self) -> str: ...

    @property
    def empties(self) -> str: ...

    @property
    def directions(self) -> bool: ...

    def knowing(self, square: float) -> "Plan":
        """The plan, told the sum of w |x|^2."""
        ...

    def seeded(self, seed: int) -> "Plan":
        """The plan with this seed for its draws, if it draws."""
        ...

    def step(self, run: Run, centers: Tensor, iteration: int) -> Step: ...

    def iterate(
        self, run: Run, centers: Tensor, tolerance: float, max_iter: int
    ) -> tuple[Tensor, list[float]] | None:
        """All steps in one call, where the engine has one: the last centers, and the objectives."""
        ...

    def place(self, step: Step, centers: Tensor) -> Tensor:
        """The new centers, (k, d); a cluster without mass has its old one."""
        ...

    def finish(self, run: Run, centers: Tensor) -> Final: ...


@runtime_checkable
class LayeredPlan(Plan, Protocol):
    """A plan that is more than one step again and again, and knows when it has come to its end."""

    def layers(
        self, run: Run, centers: Tensor, dtype: torch.dtype, tolerance: float, most: int, first: int
    ) -> Iterator[Layers]:
        """At most so many layers from these centers; `first` went before, in other starts."""
        ...


def total(values: Tensor, weights: Tensor | None) -> Tensor:
    """The weighted sum over a block, in float64."""
    values = values.double()
    return (values if weights is None else values * weights).sum()
