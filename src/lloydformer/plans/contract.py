"""What a plan is: a recipe lowered to folds, and what one iteration returns."""

from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from lloydformer.numerics.clusters import means_or
from lloydformer.plans.session import Session

StopsOn = Literal["labels", "shift", "never"]
Empties = Literal["move", "copy", "keep"]


@dataclass(frozen=True)
class Sums:
    """New centers as sums (*b, k, d) over masses (*b, k), in float64."""

    sums: Tensor
    masses: Tensor


@dataclass(frozen=True)
class NewCenters:
    """New centers (*b, k, d) that are finished, in float64.

    rows: the data rows (*b, k) that they are, in plans that draw medoids.
    """

    centers: Tensor
    rows: Tensor | None = None


@dataclass(frozen=True)
class Step:
    """The result of one iteration; scalars stay tensors (*b,) until a decision needs them.

    Attributes
    ----------
    update : Sums or NewCenters
        Where the centers go.
    objective : Tensor of shape (*b,)
        Of the centers that the iteration began with.
    changed : Tensor of shape (*b,) or None
        Points with weight whose label (or trimming) changed; None if labels are not compared.
    """

    update: Sums | NewCenters
    objective: Tensor
    changed: Tensor | None


@dataclass(frozen=True)
class FinalAssignment:
    """The last assignment: what users compare, and what the plan descends.

    masses: the weight that each center stands for when `partial_fit` goes on from it; None in
    plans whose centers are no running means.
    """

    inertia: float
    objective: float
    masses: tuple[float, ...] | None = None


@dataclass(frozen=True)
class IterationsResult:
    """Iterations that an engine ran in one call.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        After the last iteration, in float64.
    history : list of float
        For each iteration, the objective of the centers that it began with.
    settled : bool
        Did the stop rule end it? If not, it may go on from these centers.
    empty : bool
        The next iteration leaves a cluster without points, and the engine does not fill it: the
        loop in Python must run it.
    interrupted : bool
        Ctrl-C ended it.
    final : Final or None
        What `Plan.finish` would return, if the engine has done that as well: then the centers are
        rounded as users get them, and the session has the labels.
    """

    centers: Tensor
    history: list[float]
    settled: bool
    empty: bool = False
    interrupted: bool = False
    final: FinalAssignment | None = None


@runtime_checkable
class Plan(Protocol):
    """A recipe, lowered to folds.

    Attributes
    ----------
    stops_on : {"labels", "shift", "never"}
        "labels" is scikit-learn's rule (labels unchanged, or centers within the tolerance),
        "shift" uses the centers alone, "never" runs all iterations.
    empties : {"move", "copy", "keep"}
        The point that fills an empty cluster leaves the sums of its own cluster ("move") or not
        ("copy"); "keep" leaves an empty cluster where it is.
    directions : bool
        Are points read as unit vectors?
    draws_centers : bool
        Does each iteration draw new centers, so that the best ones must be remembered?
    has_plain_inertia : bool
        Is the inertia the sum of w d^2 of all points (half of it for directions)? Then it can be
        found without the plan.
    """

    @property
    def stops_on(self) -> StopsOn: ...

    @property
    def empties(self) -> Empties: ...

    @property
    def directions(self) -> bool: ...

    @property
    def draws_centers(self) -> bool: ...

    @property
    def has_plain_inertia(self) -> bool: ...

    def with_square_sum(self, square: float) -> "Plan":
        """The plan, told the sum of w |x|^2."""
        ...

    def with_seed(self, seed: int) -> "Plan":
        """The plan with this seed for its noise, if it draws."""
        ...

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        """One iteration from centers (k, d), in the precision of the data."""
        ...

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        """One to `max_iter` iterations in one engine call; None if the engine has no such task."""
        ...

    def finish(self, session: Session, centers: Tensor) -> FinalAssignment:
        """Label the points for the last time and measure the result."""
        ...


P = TypeVar("P", bound="PlanDefaults")


class PlanDefaults:
    """Defaults of a plan: no knowledge beforehand, no noise, no task for the whole loop."""

    draws_centers: ClassVar[bool] = False
    has_plain_inertia: ClassVar[bool] = True

    def with_square_sum(self: P, square: float) -> P:
        return self

    def with_seed(self: P, seed: int) -> P:
        return self

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        return None


def apply_update(update: Sums | NewCenters, centers: Tensor, directions: bool = False) -> Tensor:
    """The new centers (*b, k, d); a cluster without mass keeps its old one.

    With `directions`, centers are the directions of the sums.
    """
    if isinstance(update, NewCenters):
        return update.centers
    if directions:
        lengths = update.sums.norm(dim=-1)
        return means_or(update.sums, lengths, centers)
    return means_or(update.sums, update.masses, centers)
