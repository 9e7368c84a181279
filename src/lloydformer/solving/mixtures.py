"""The loop of EM: starts, iterations, the stop rule of scikit-learn, restarts and Ctrl-C."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from lloydformer.plans.means import MeansPlan
from lloydformer.plans.mixture import (
    Components,
    IllDefinedError,
    LabelSums,
    MixturePlan,
    MixtureStatistics,
    RandomSums,
    Totals,
)
from lloydformer.plans.session import Session
from lloydformer.solving.driver import Restarts, solve
from lloydformer.solving.iterations import PlanIterations
from lloydformer.solving.mixture_search import GAIN, SORTING, merge_down, split
from lloydformer.solving.rules import Rules
from lloydformer.solving.run import Callback, FitContext, Progress
from lloydformer.solving.seeding import kmeans_plusplus, random_rows
from lloydformer.user_warnings import warn_user

# Start of the components of other families than Gaussian: each gets this many rows of the overall
# mean. A probability or rate of 0 would stay 0 in every iteration, whatever the other rows say.
EXTRA_ROWS = 1.0


@dataclass(frozen=True)
class MixtureOutcome:
    """The result of one start.

    Attributes
    ----------
    components : Components
        The parameters after the last iteration.
    bounds : tuple of float
        For each iteration, the mean log-likelihood of a row before it, as scikit-learn counts.
    converged : bool
        Whether the stop rule ended the start.
    """

    components: Components
    bounds: tuple[float, ...]
    converged: bool

    @property
    def bound(self) -> float:
        """The last lower bound; minus infinity before the first iteration."""
        return self.bounds[-1] if self.bounds else -math.inf


@dataclass(frozen=True)
class MixtureFit:
    """Settings that the starts of a fit share.

    Attributes
    ----------
    plan : MixturePlan
        Its iterations are run.
    session : Session
        The data, opened by an engine.
    totals : Totals
        Sums that do not change (`MixturePlan.measure`).
    max_iter : int
        Maximum number of iterations of a start.
    tol : float
        A start ends when the lower bound changes by less than this.
    callback : callable or None
        Called after each iteration; `Progress.objective` is minus the lower bound.
    patience : int
        Relocations in a row without gain after which the search for a better optimum ends; 0: no
        search.
    """

    plan: MixturePlan
    session: Session
    totals: Totals
    max_iter: int
    tol: float
    callback: Callback | None = None
    patience: int = 0

    def improve(
        self, start: Components, number: int, bound: float = -math.inf
    ) -> Iterator[MixtureOutcome]:
        """Yield the outcome so far: of the start itself, then after each iteration.

        bound: the last lower bound of the fit that is continued.
        """
        outcome = MixtureOutcome(start, (), converged=False)
        yield outcome
        for iteration in range(self.max_iter):
            began = perf_counter()
            new, likelihood = self.plan.improve(self.session, outcome.components, self.totals)
            shift = (new.means - outcome.components.means).square().sum().item()
            change, bound = likelihood - bound, likelihood
            # scikit-learn's rule: also a change downwards, which rounding causes
            settled = abs(change) < self.tol
            outcome = MixtureOutcome(new, (*outcome.bounds, likelihood), settled)
            yield outcome
            if self.callback is not None:
                seconds = perf_counter() - began
                rows = self.session.layout.n_rows
                self.callback(Progress(number, iteration, -likelihood, shift, rows, seconds))
            if settled:
                return

    def relocate(
        self, components: Components, rng: np.random.RandomState, *, longest: bool
    ) -> Components:
        """Return another start near these components: split, sorted out by EM, and merged."""
        twice = split(components, rng, longest=longest)
        for _ in range(SORTING):
            twice, _ = self.plan.improve(self.session, twice, self.totals)
        return merge_down(twice, len(components.means))


def solve_mixture(
    fit: MixtureFit,
    starts: Iterator[Components],
    rng: np.random.RandomState,
    bound: float = -math.inf,
) -> tuple[MixtureOutcome | None, KeyboardInterrupt | None]:
    """Run EM from each start, relocate the best outcome, and return the best of all.

    rng: draws the axes along which components are split.
    bound: the last lower bound of the fit that the only start continues.

    Returns
    -------
    MixtureOutcome or None
        The best outcome; the best so far after Ctrl-C, None if there is none yet.
    KeyboardInterrupt or None
        The interrupt, which the caller raises again once it has kept the outcome.

    Raises
    ------
    IllDefinedError
        If a covariance becomes singular in every start. Starts where that happens are dropped.
    """
    best: MixtureOutcome | None = None
    outcome: MixtureOutcome | None = None
    collapsed, number, n_starts = list[IllDefinedError](), -1, 0

    def better() -> MixtureOutcome | None:
        return outcome if best is None or (outcome and outcome.bound > best.bound) else best

    try:
        for number, start in enumerate(starts):
            outcome, n_starts = None, number + 1
            try:
                for outcome in fit.improve(start, number, bound):  # noqa: B007  read by `better`
                    pass
            except IllDefinedError as error:
                collapsed.append(error)
                continue
            best = better()
        failures = 0
        while best is not None and failures < fit.patience:
            outcome, number = None, number + 1
            try:
                moved = fit.relocate(best.components, rng, longest=failures == 0)
                for outcome in fit.improve(moved, number):  # noqa: B007  read by `better`
                    pass
            except IllDefinedError:
                outcome = None
            if outcome is not None and outcome.bound > best.bound + max(fit.tol, GAIN):
                best, failures = outcome, 0
            else:
                failures += 1
    except KeyboardInterrupt as stop:
        return better(), stop
    if collapsed and best is None:
        raise collapsed[0]
    if collapsed:
        warn_user(
            f"{len(collapsed)} of {n_starts} starts were dropped, because a covariance matrix "
            "became singular. A larger reg_covar prevents that.",
            ConvergenceWarning,
        )
    return best, None


def draw_start(
    fit: MixtureFit, n_components: int, method: str, rng: np.random.RandomState
) -> Components:
    """Return a start by one of scikit-learn's methods.

    method: "kmeans" takes the statistics of the clusters of k-means, "random" those of random
    responsibilities; "random_from_data" and "k-means++" take rows as means, equal weights and no
    variance but the regularisation.
    """
    session, plan, k = fit.session, fit.plan, n_components
    if method == "random":
        layout = session.layout
        origin = torch.zeros(k, layout.n_features, dtype=torch.float64, device=layout.device)
        blank = Components.around(plan.kind, origin)
        sums = session.fold(RandomSums(blank, int(rng.randint(2**31 - 1))))
        return _estimate_start(fit, blank, sums)
    if method == "random_from_data":
        return _from_rows(fit, random_rows(session, k, rng))
    rows = kmeans_plusplus(session, k, rng)
    if method == "k-means++":
        return _from_rows(fit, rows)
    context = FitContext.create(MeansPlan(), session, Rules())
    centers = session.gather(rows).double()
    result = solve(context, Restarts(1, iter([centers])), PlanIterations())
    # labels of the last assignment are still in the session, where the next fold reads them
    near = Components.around(plan.kind, result.centers)
    return _estimate_start(fit, near, session.fold(LabelSums(near)))


def _estimate_start(fit: MixtureFit, near: Components, sums: tuple[Tensor, ...]) -> Components:
    """Return the components that belong to statistics about the means of `near`."""
    found, kind = MixtureStatistics(*sums), fit.plan.kind
    masses, rows = found.masses, found.sums
    if kind.family != "gaussian":
        mean = (rows + masses[:, None] * near.means).sum(dim=0) / masses.sum()
        rows = rows + EXTRA_ROWS * (mean - near.means)
        masses = masses + EXTRA_ROWS
    # A cluster without points keeps its center. Its sums are 0, so any small mass will do.
    masses = torch.where(masses > 0, masses, 1e-12 * masses.sum())
    found = MixtureStatistics(masses, rows, found.squares)
    return fit.plan.estimate(near, found, masses.log(), fit.totals)


def _from_rows(fit: MixtureFit, rows: Tensor) -> Components:
    """Return components with these rows as means, and no variance but the regularisation."""
    plan, means = fit.plan, fit.session.gather(rows).double()
    if plan.kind.family != "gaussian":
        ones = means.new_ones(len(means))
        near = Components.around(plan.kind, means)
        return _estimate_start(fit, near, (ones, torch.zeros_like(means), ones))
    start = Components.around(plan.kind, means, plan.regularisation or 1.0)
    if not plan.kind.is_pooled:
        return start
    # one covariance for all components begins as that of all rows
    mean = fit.totals.rows / fit.totals.weight
    whole = fit.totals.squares / fit.totals.weight
    if plan.kind.covariance == "tied":
        whole = whole - mean[:, None] * mean
    else:
        whole = (whole - mean.square().sum()) / len(mean)
    return Components.create(plan.kind, start.log_weights, means, plan.regularise(whole))
