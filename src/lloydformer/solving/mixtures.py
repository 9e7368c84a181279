"""The loop of EM: starts, iterations, the stop rule of scikit-learn, restarts and Ctrl-C."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

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
# In a race all starts run for so many iterations; so many of the best, and the first, run on.
RACE, FINISHERS = 20, 2


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
    race : bool
        Run all starts for a few iterations, and only the best of them to their ends.
    """

    plan: MixturePlan
    session: Session
    totals: Totals
    max_iter: int
    tol: float
    callback: Callback | None = None
    patience: int = 0
    race: bool = False

    def improve(
        self, outcome: MixtureOutcome, number: int, stop: int, bound: float = -math.inf
    ) -> Iterator[MixtureOutcome]:
        """Yield the outcome after each iteration, until it has settled or has `stop` of them.

        bound: the last lower bound of the fit that is continued.
        """
        bound = outcome.bounds[-1] if outcome.bounds else bound
        for iteration in range(len(outcome.bounds), min(stop, self.max_iter)):
            if outcome.converged:
                return
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

    def relocate(
        self, components: Components, rng: np.random.RandomState, *, longest: bool
    ) -> Components:
        """Return another start near these components: split, sorted out by EM, and merged."""
        twice = split(components, rng, longest=longest)
        for _ in range(SORTING):
            twice, _ = self.plan.improve(self.session, twice, self.totals)
        return merge_down(twice, len(components.means))


@dataclass
class SearchState:
    """Everything that a fit needs to resume; a few numbers of the size of the parameters.

    Attributes
    ----------
    draws : object
        State of the random number generator when the current run had been drawn.
    ended : list of MixtureOutcome or None
        The starts that have ended, in a race after a few iterations; None: a covariance became
        singular.
    n_finished : int
        Starts of a race that have been run to their ends.
    rounds, failures : int
        Rounds of the search so far, and those in a row without gain.
    current : MixtureOutcome or None
        The run in progress.
    best : MixtureOutcome or None
        The best outcome so far.
    """

    draws: Any = None
    ended: list[MixtureOutcome | None] = field(default_factory=list)
    n_finished: int = 0
    rounds: int = 0
    failures: int = 0
    current: MixtureOutcome | None = None
    best: MixtureOutcome | None = None


@dataclass
class MixtureSearch:
    """A fit: starts, in a race or to their ends, then relocations of the best outcome.

    Attributes
    ----------
    fit : MixtureFit
        The settings.
    draw : callable
        Returns another start.
    n_starts : int
        The number of all starts.
    rng : RandomState
        Draws starts, and the axes along which components are split.
    bound : float
        The last lower bound of the fit that the only start continues.
    state : SearchState
        Where the search is. That of an interrupted fit resumes it, with a bit-identical result.
    save : callable or None
        Called with the state when it has changed.
    """

    fit: MixtureFit
    draw: Callable[[], Components]
    n_starts: int
    rng: np.random.RandomState
    bound: float = -math.inf
    state: SearchState = field(default_factory=SearchState)
    save: Callable[[SearchState], None] | None = None

    def solve(self) -> tuple[MixtureOutcome | None, KeyboardInterrupt | None]:
        """Run everything that is left.

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
        state = self.state
        if state.draws is not None:
            self.rng.set_state(state.draws)
        try:
            self._run_starts()
            if self.fit.race:
                self._finish_race()
            self._relocate()
        except KeyboardInterrupt as stop:
            current, best = state.current, state.best
            if current is not None and (best is None or current.bound > best.bound):
                best = current
            return best, stop
        collapsed = sum(outcome is None for outcome in state.ended)
        if collapsed and state.best is None:
            raise IllDefinedError
        if collapsed:
            warn_user(
                f"{collapsed} of {self.n_starts} starts were dropped, because a covariance matrix "
                "became singular. A larger reg_covar prevents that.",
                ConvergenceWarning,
            )
        return state.best, None

    def _run_starts(self) -> None:
        state = self.state
        stop = RACE if self.fit.race else self.fit.max_iter
        while len(state.ended) < self.n_starts:
            outcome: MixtureOutcome | None = None
            try:
                if state.current is None:
                    self._begin(MixtureOutcome(self.draw(), (), converged=False))
                outcome = self._run(len(state.ended), stop)
            except IllDefinedError:
                pass
            state.ended.append(outcome)
            self._keep(outcome)

    def _finish_race(self) -> None:
        """Run the best starts to their ends, and the first: a search is never worse than none."""
        state = self.state
        bounds = {i: outcome.bound for i, outcome in enumerate(state.ended) if outcome is not None}
        places = sorted(bounds, key=bounds.__getitem__, reverse=True)
        chosen = places[:FINISHERS] + [i for i in places[FINISHERS:] if i == 0]
        while state.n_finished < len(chosen):
            place = chosen[state.n_finished]
            outcome: MixtureOutcome | None = None
            try:
                if state.current is None:
                    self._begin(state.ended[place])
                outcome = self._run(place, self.fit.max_iter)
            except IllDefinedError:
                pass
            state.n_finished += 1
            self._keep(outcome)

    def _relocate(self) -> None:
        """Relocate the best outcome, until too many rounds in a row have no gain."""
        state, fit = self.state, self.fit
        while state.best is not None and state.failures < fit.patience:
            outcome, before = None, state.best.bound
            try:
                if state.current is None:
                    moved = fit.relocate(
                        state.best.components, self.rng, longest=state.failures == 0
                    )
                    self._begin(MixtureOutcome(moved, (), converged=False))
                outcome = self._run(self.n_starts + state.rounds, fit.max_iter)
            except IllDefinedError:
                pass
            state.rounds += 1
            if outcome is not None and outcome.bound > before + max(fit.tol, GAIN):
                state.failures = 0
                self._keep(outcome)
            else:
                state.failures += 1
                self._keep(None)

    def _begin(self, outcome: MixtureOutcome | None) -> None:
        self.state.current, self.state.draws = outcome, self.rng.get_state()
        self._save()

    def _run(self, number: int, stop: int) -> MixtureOutcome:
        """Run the current outcome until it has settled or has `stop` iterations."""
        outcome = self.state.current
        assert outcome is not None
        for improved in self.fit.improve(outcome, number, stop, self.bound):
            self.state.current = outcome = improved
            self._save()
        return outcome

    def _keep(self, outcome: MixtureOutcome | None) -> None:
        """End a run; its outcome is kept if it is the best."""
        state = self.state
        state.current, state.draws = None, self.rng.get_state()
        if outcome is not None and (state.best is None or outcome.bound > state.best.bound):
            state.best = outcome
        self._save()

    def _save(self) -> None:
        if self.save is not None:
            self.save(self.state)


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
