"""Recombining k-means: a pool of relocated solutions, and children of pairs of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from lloydformer.numerics.noise import cluster_uniform
from lloydformer.numerics.search_constants import SAME_SOLUTION, TIE
from lloydformer.plans.recombining import merge_centers, mutate
from lloydformer.plans.session import Session
from lloydformer.solving.relocations import RelocationRun, Relocations, finish_falling
from lloydformer.solving.run import AlgorithmRun, FitContext, HistoryRecorder, Outcome


@dataclass(frozen=True)
class PoolMember:
    """A solution.

    Attributes
    ----------
    centers : Tensor of shape (k, d)
        The centers, in float64.
    masses : tuple of float
        The weight of the points of each cluster.
    objective : float
        The objective of the centers.
    """

    centers: Tensor
    masses: tuple[float, ...]
    objective: float


class Pool:
    """Different solutions, at most `size`, the best one first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.members: list[PoolMember] = []

    def enter(self, one: PoolMember) -> bool:
        """Enter a solution if it is new, and better than the worst member of a full pool.

        If a member has nearly the same objective, the better of the two stays. Returns True only if
        the solution is new.
        """
        members = self.members
        for place, other in enumerate(members):
            if abs(one.objective - other.objective) <= SAME_SOLUTION * other.objective:
                # Better by more than rounding: otherwise the engine and the number of threads would
                # decide which of two equal solutions is kept.
                if one.objective < (1 - TIE) * other.objective:
                    members[place] = one
                return False
        if len(members) == self.size and one.objective >= members[-1].objective:
            return False
        members.append(one)
        members.sort(key=lambda member: member.objective)
        del members[self.size :]
        return True

    def merge_two(self, session: Session, seed: int, number: int) -> Tensor:
        """Return the merged centers (k, d) of two members, drawn for child `number`."""
        # Equal probabilities; in Python, because tensors took a third of the time for k = 10.
        draws = cluster_uniform(seed, number, "parents", len(self.members))
        order = sorted(range(len(draws)), key=lambda place: -draws[place])
        parents = [self.members[place] for place in order[:2]]
        centers = torch.cat([parent.centers for parent in parents])
        masses = torch.tensor([mass for parent in parents for mass in parent.masses])
        return merge_centers(session, centers, masses.double(), len(parents[0].centers))


@dataclass(frozen=True)
class Recombinations:
    """Relocations from several starts, and children of their solutions.

    Attributes
    ----------
    first : Relocations
        The relocations from each start; its seed is the random seed of the whole pool.
    n_pool : int
        Number of starts, and maximum number of members of the pool.
    n_children : int
        Number of children, each made from two members.
    child_patience : int
        Patience of the relocations of a child.
    n_together : int
        Number of children that are made from the same pool, and of solutions that an engine
        relocates in one call.
    starts_together : bool
        All starts are made before the first is relocated, so that an engine relocates several in
        one call. False: each is relocated before the next is made.
    """

    # 1, 4 or 8 children from the same pool made no difference that could be measured; 4 keep the
    # threads busy.
    first: Relocations
    n_pool: int = 8
    n_children: int = 40
    child_patience: int = 1
    n_together: int = 4
    starts_together: bool = True

    @property
    def n_starts(self) -> int:
        return self.n_pool

    def runs(
        self, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> Iterator[AlgorithmRun]:
        yield PoolRun(self, fit, restart, starts)


class InterruptedStart(KeyboardInterrupt):
    """Ctrl-C while initial centers were made; `centers` (k, d): the best ones so far."""

    def __init__(self, centers: Tensor) -> None:
        super().__init__("stopped by the user")
        self.centers = centers


@dataclass
class Generation:
    """Solutions that are relocated from the same pool.

    Attributes
    ----------
    patience : int
        Patience of each relocation run.
    max_layers : int
        Maximum number of layers of each relocation run.
    waiting : list of (int, Tensor)
        Number and initial centers (k, d) of each solution that has not been relocated yet.
    solutions : list of PoolMember
        The relocated ones; they enter the pool at the end of the generation.
    """

    patience: int
    max_layers: int
    waiting: list[tuple[int, Tensor]]
    solutions: list[PoolMember] = field(default_factory=list)


class PoolRun:
    """One pool, from its starts to its last child.

    The first generation consists of all starts; without `starts_together` or with a deadline, each
    start is a generation of its own, because there may be no time for another. Each later
    generation consists of `n_together` children. The history has the lowest objective of all
    solutions so far.
    """

    silent: ClassVar[bool] = False

    def __init__(
        self, how: Recombinations, fit: FitContext, restart: int, starts: Iterator[Tensor]
    ) -> None:
        self.how, self.fit, self.done = how, fit, False
        self.pool = Pool(how.n_pool)
        self._starts, self._n_taken, self._n_born = starts, 0, 0
        self._mutate = False  # children are mutated if no solution of the last generation was new
        self._seed = how.first.seed + restart * (how.n_pool + how.n_children)
        self._generation: Generation | None = None
        self._run: RelocationRun | None = None

    @property
    def can_finish(self) -> bool:
        begun = self._run is not None and self._run.can_finish
        finished = self._generation is not None and self._generation.solutions
        return bool(begun or finished or self.pool.members)

    @property
    def depends_on_session(self) -> bool:
        return self._run is not None

    def advance(self, recorder: HistoryRecorder) -> None:
        if self._generation is None:
            self._generation = self._next_generation(len(recorder.history))
            self.done = self._generation is None
            return
        generation = self._generation
        if self._run is None and not self._relocate_by_engine(generation, recorder):
            self._run = self._first_waiting(generation)
        if self._run is not None:
            self._run.advance(_Lowest(recorder))
            if self._run.done:
                generation.solutions.append(self._measure(self._run.centers))
                del generation.waiting[0]
                self._run = None
        if not generation.waiting:
            self._end_generation(generation)

    def _next_generation(self, n_layers: int) -> Generation | None:
        """Return the starts, or some children; None if the pool is done.

        n_layers: number of layers so far, which limits those of the children.
        """
        how, rules = self.how, self.fit.rules
        if self._n_taken < how.n_pool:
            together = how.starts_together and math.isinf(self.fit.deadline)
            first, count = self._n_taken, how.n_pool if together else 1
            waiting = list(enumerate((self._take_start() for _ in range(count)), first))
            return Generation(how.first.patience, rules.max_iter // how.n_pool, waiting)
        best, left = self.pool.members[0], rules.max_iter - n_layers
        # One center cannot be relocated, and an objective of 0 cannot fall.
        can_improve = len(best.centers) > 1 and best.objective > 0
        if not can_improve or self._n_born >= how.n_children or left <= how.n_together:
            return None
        numbers = range(self._n_born, min(self._n_born + how.n_together, how.n_children))
        waiting = [(how.n_pool + number, self._make_child(number)) for number in numbers]
        self._n_born += len(waiting)
        return Generation(how.child_patience, left // len(waiting), waiting)

    def _take_start(self) -> Tensor:
        """Return the next initial centers (k, d)."""
        try:
            centers = next(self._starts)
        except InterruptedStart as stop:  # what it has found counts, without any layer
            self.pool.enter(self._measure(stop.centers))
            raise KeyboardInterrupt from None
        self._n_taken += 1
        return centers

    def _make_child(self, number: int) -> Tensor:
        """Return the initial centers (k, d) of a child: two merged members, possibly mutated."""
        session = self.fit.session
        centers = self.pool.merge_two(session, self._seed, number)
        return mutate(session, centers, self._seed, number) if self._mutate else centers

    def _end_generation(self, generation: Generation) -> None:
        """Enter the solutions into the pool, and decide whether the next children are mutated."""
        new = [self.pool.enter(solution) for solution in generation.solutions]
        # Mutation of every child was worse for k = 50 (0.20 %), so it is left to pools that no
        # longer improve (docs/recombining.md). A pool of one has no pairs to merge.
        alone = len(self.pool.members) < 2
        self._mutate = alone or (self._n_born > 0 and not any(new))
        self._generation = None

    def _first_waiting(self, generation: Generation) -> RelocationRun:
        """Return a run of the first solution that waits."""
        number, centers = generation.waiting[0]
        how = replace(self.how.first, seed=self._seed + number, patience=generation.patience)
        return RelocationRun(how, self._context_of(generation), 0, centers, whole=False)

    def _context_of(self, generation: Generation) -> FitContext:
        """Return the context of a relocation run, with its share of the layers."""
        rules = replace(self.fit.rules, max_iter=generation.max_layers)
        return replace(self.fit, rules=rules)

    def _relocate_by_engine(self, generation: Generation, recorder: HistoryRecorder) -> bool:
        """Relocate the next solutions in one engine call; False if the engine has no such call."""
        # Seeds are consecutive from the number of the first one, as the kernel counts them.
        some = generation.waiting[: self.how.n_together]
        first = self._seed + some[0][0]
        how = replace(self.how.first, patience=generation.patience)
        starts, seeds = [centers for _, centers in some], range(first, first + len(some))
        results = how.run_by_engine(self._context_of(generation), starts, seeds)
        if results is None:
            return False
        for result in results:
            solution = PoolMember(result.centers, result.masses, result.objective)
            generation.solutions.append(solution)
            for objective in result.history:
                recorder.history.append(min([objective, *recorder.history[-1:]]))
        if any(result.interrupted for result in results):
            raise KeyboardInterrupt
        del generation.waiting[: len(some)]
        return True

    def _measure(self, centers: Tensor) -> PoolMember:
        """Compute masses and objective of these centers, by a pass over the points."""
        session = self.fit.session
        last = self.fit.plan.finish(session, centers.to(session.layout.dtype))
        assert last.masses is not None
        return PoolMember(centers, last.masses, last.inertia)

    def best(self) -> PoolMember:
        """Return the best solution so far; this ends an interrupted generation."""
        if self._run is not None and self._run.can_finish:
            assert self._generation is not None
            self._generation.solutions.append(self._measure(self._run.centers))
        if self._generation is not None:
            self._end_generation(self._generation)
        if not self.pool.members:  # the deadline has passed before the first layer
            self.pool.enter(self._measure(self._take_start()))
        return self.pool.members[0]

    def finish(self, history: list[float]) -> Outcome:
        return finish_falling(self.fit, self.best().centers, history)

    def state(self) -> Any:
        counts = (self._n_taken, self._n_born, self._mutate, self.done)
        run = None if self._run is None else self._run.state()
        return list(self.pool.members), counts, self._generation, run

    def restore(self, state: Any) -> None:
        self.pool.members, counts, self._generation, run = state
        self._n_taken, self._n_born, self._mutate, self.done = counts
        for _ in range(self._n_taken):  # they are in the pool already
            next(self._starts)
        if run is not None:
            assert self._generation is not None
            self._run = self._first_waiting(self._generation)
            self._run.restore(run)


class _Lowest(HistoryRecorder):
    """Records the layers of one solution in the history of its pool, as the lowest so far."""

    def __init__(self, pool: HistoryRecorder) -> None:
        self._pool, self.history, self.callback = pool, pool.history, pool.callback

    def record(self, objective: float, shift: float, count: int = 1) -> None:
        self._pool.record(min([objective, *self.history[-1:]]), shift, count)
