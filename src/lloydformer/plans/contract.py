"""The contract of a plan: a recipe lowered to folds, and the values that its iterations return."""

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from torch import Tensor

from lloydformer.numerics.clusters import means_or
from lloydformer.plans.assign import NearestDistances
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

    rows: the data rows (*b, k) that they are equal to, in plans that draw medoids.
    """

    centers: Tensor
    rows: Tensor | None = None


@dataclass(frozen=True)
class Step:
    """The result of one iteration; scalars stay tensors (*b,) until a decision needs them.

    Attributes
    ----------
    update : Sums or NewCenters
        The new centers.
    objective : Tensor of shape (*b,)
        The objective of the centers that the iteration began with.
    changed : Tensor of shape (*b,) or None
        Number of points with weight whose label (or trimming) changed; None if labels are not
        compared.
    """

    # Tensors, because reading a number from a GPU waits for all work before it: the loop copies all
    # numbers at once.
    update: Sums | NewCenters
    objective: Tensor
    changed: Tensor | None


@dataclass(frozen=True)
class Certificate:
    """A proof of how good an assignment within bounds on sizes is.

    Attributes
    ----------
    gap : float
        The proved relative distance of its cost to that of the cheapest assignment.
    prices : tuple of float
        The price of a place in each cluster, from which the proof follows.
    sizes : tuple of int
        The number of points with weight in each cluster.
    """

    gap: float
    prices: tuple[float, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class FinalAssignment:
    """The result of the last assignment.

    Attributes
    ----------
    inertia : float
        The `inertia_` of the fit, by which restarts are compared.
    objective : float
        The objective of the plan, which ends the history.
    masses : tuple of float or None
        The weight of the points of each cluster, from which `partial_fit` continues; None in plans
        whose centers are not running means.
    certificate : Certificate or None
        In plans with bounds on the sizes of clusters: how good the assignment is.
    """

    inertia: float
    objective: float
    masses: tuple[float, ...] | None = None
    certificate: Certificate | None = None


@dataclass(frozen=True)
class IterationsResult:
    """The result of iterations that an engine ran in one call.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The centers after the last iteration, in float64.
    history : list of float
        For each iteration, the objective of the centers that it began with.
    settled : bool
        The stop rule holds. If not, the iterations may continue from these centers.
    empty : bool
        True if the engine stopped before an iteration that leaves a cluster without points,
        because it cannot fill that cluster: `PlanLoop` must run this iteration. Not a setting, in
        contrast to `Rules.empty` and `Plan.empties`.
    interrupted : bool
        Ctrl-C ended the call.
    final : FinalAssignment or None
        The result of `Plan.finish`, if the engine has computed it as well: then the centers are
        rounded as in `cluster_centers_`, and the session has the labels.
    """

    centers: Tensor
    history: list[float]
    settled: bool
    empty: bool = False
    interrupted: bool = False
    final: FinalAssignment | None = None


P = TypeVar("P", bound="Plan")


class Plan:
    """A recipe, lowered to folds; the base of all plans.

    Attributes
    ----------
    stops_on : {"labels", "shift", "never"}
        "labels" is scikit-learn's rule (labels unchanged, or centers within the tolerance),
        "shift" uses the centers alone, "never" runs all iterations.
    empties : {"move", "copy", "keep"}
        How the plan fills an empty cluster, if the user's `Rules.empty` is "farthest": the farthest
        point leaves the sums of its own cluster ("move"), or counts in both ("copy"). "keep": this
        plan never fills a cluster, whatever `Rules.empty` is.
    directions : bool
        Points are divided by their length.
    draws_centers : bool
        Each iteration draws random centers, so that the best ones must be remembered.
    has_plain_inertia : bool
        The inertia is the sum of w d^2 of all points (half of it for directions), so that it can
        be computed without the plan.
    """

    # Class variables where a plan has no choice; `directions` is a field of `MeansPlan`.
    stops_on: ClassVar[StopsOn]
    empties: ClassVar[Empties]
    directions: bool = False
    draws_centers: ClassVar[bool] = False
    has_plain_inertia: ClassVar[bool] = True

    def with_square_sum(self: P, square: float) -> P:
        """Return the plan with the sum of w |x|^2, if its objective is computed from that."""
        return self

    def with_seed(self: P, seed: int) -> P:
        """Return the plan with this random seed, if it draws."""
        return self

    def step(self, session: Session, centers: Tensor, iteration: int) -> Step:
        """Run one iteration from centers (k, d), in the precision of the data."""
        raise NotImplementedError(f"{type(self).__name__} has no iterations")

    def iterate(
        self, session: Session, centers: Tensor, tolerance: float, max_iter: int
    ) -> IterationsResult | None:
        """Run up to `max_iter` iterations in one engine call; None if the engine cannot do that."""
        return None

    def finish(
        self, session: Session, centers: Tensor, returned: Tensor | None = None
    ) -> FinalAssignment:
        """Label the points by these centers for the last time and measure the result.

        returned: the centers (k, d) that users get (`Layout.to_exact_units`), of which `centers`
        are rounded ones. Labels and distances are then those of `returned`.
        """
        inertia = session.fold(NearestDistances(centers, returned))[0].item()
        return FinalAssignment(inertia, inertia)


def apply_update(update: Sums | NewCenters, centers: Tensor, directions: bool = False) -> Tensor:
    """Return the new centers (*b, k, d); a cluster without mass keeps its old one.

    With `directions`, centers are the directions of the sums.
    """
    if isinstance(update, NewCenters):
        return update.centers
    # alg:lloyds-sphere divides by the length of the sum; its mass does not enter.
    masses = update.sums.norm(dim=-1) if directions else update.masses
    return means_or(update.sums, masses, centers)
