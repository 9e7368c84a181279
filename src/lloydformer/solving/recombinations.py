"""The course of recombining k-means: a pool of relocated solutions, and children of pairs."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from lloydformer.numerics.noise import cluster_uniform
from lloydformer.plans.merging import merge
from lloydformer.plans.mutation import mutated
from lloydformer.plans.session import Session
from lloydformer.solving.descent import Descent, Outcome, Progress, Stopped
from lloydformer.solving.relocations import Relocations, Walk, finished

SAME = 1e-6
"""Solutions whose objectives differ by no more than this fraction count as the same one."""
TIE = 1e-9
"""Of two that are the same, the first one stays, unless the other is better by this fraction."""


@dataclass(frozen=True)
class Member:
    """A solution: centers (k, d) in float64, the masses of its clusters, and its objective."""

    centers: Tensor
    masses: tuple[float, ...]
    objective: float


class Pool:
    """Different solutions, at most `size`, the best one first."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.members: list[Member] = []

    def enter(self, one: Member) -> bool:
        """Enter a solution if it is new, and better than the worst member of a full pool.

        If a member has the same objective, the better of the two stays; False all the same.
        """
        members = self.members
        for place, other in enumerate(members):
            if abs(one.objective - other.objective) <= SAME * other.objective:
                if one.objective < (1 - TIE) * other.objective:
                    members[place] = one
                return False
        if len(members) == self.size and one.objective >= members[-1].objective:
            return False
        members.append(one)
        members.sort(key=lambda member: member.objective)
        del members[self.size :]
        return True

    def united(self, session: Session, seed: int, number: int) -> Tensor:
        """The merged centers (k, d) of two members, drawn for child `number`."""
        drawn = cluster_uniform(seed, number, "parents", len(self.members))
        order = sorted(range(len(drawn)), key=lambda place: -drawn[place])
        parents = [self.members[place] for place in order[:2]]
        centers = torch.cat([parent.centers for parent in parents])
        masses = torch.tensor([mass for parent in parents for mass in parent.masses])
        return merge(session, centers, masses.double(), len(parents[0].centers))


@dataclass
class Recombinations:
    """Relocations from several starts, and children of their solutions, as in algorithms.

    Attributes
    ----------
    first : Relocations
        What is run from each start; its seed is that of all noise.
    n_pool : int
        Number of starts, and of members of the pool at most.
    n_children : int
        Number of children.
    child_patience : int
        Patience of their relocations.
    together : int
        Number of children that are made from the same pool.
    """

    first: Relocations
    n_pool: int = 8
    n_children: int = 40
    child_patience: int = 1
    together: int = 4
    _starts: list[Tensor] = field(default_factory=list, repr=False, compare=False)
    _search: "Search | None" = field(default=None, repr=False, compare=False)

    def of_sampled(self) -> "Recombinations":
        """What is run on all rows after a pool on a sample of them.

        Two starts, one of which is the best of the sample, and one child.
        """
        return Recombinations(self.first.of_large(), n_pool=2, n_children=1)

    @property
    def eager(self) -> bool:
        """With a deadline each start is run as soon as it is there: there may be no other."""
        return self.first.limited

    @property
    def over(self) -> bool:
        """No further start is wanted: the time is over, and there is a result."""
        return self.first.over and self._search is None

    def stop(self) -> None:
        """Begin no further layer: the next start is only measured, and ends the pool."""
        self.first = replace(self.first, deadline=-math.inf)

    def so_far(self) -> Outcome | None:
        """The best solution of a pool that still waits for starts."""
        return None if self._search is None else self._search.outcome()

    def __call__(self, descent: Descent, number: int, centers: Tensor) -> Iterator[Outcome]:
        """Take a start; the last one of a pool makes the children and gives an outcome."""
        if self._search is None:
            self._search, self._starts = Search(self, descent, number // self.n_pool), []
        search = self._search
        self._starts.append(centers)
        try:
            if self.eager:
                search.take([centers], len(self._starts) - 1)
            if len(self._starts) < self.n_pool and not self.first.over:
                return
            if not self.eager:
                search.take(self._starts)
            search.breed()
        except KeyboardInterrupt:
            raise Stopped(search.outcome()) from None
        self._search = None
        outcome = search.outcome()
        assert outcome is not None
        yield outcome


class Search:
    """One pool, from its starts to its last child."""

    def __init__(self, how: Recombinations, descent: Descent, number: int) -> None:
        self.how, self.descent, self.number = how, descent, number
        self.pool = Pool(how.n_pool)
        self.history: list[float] = []
        self.seed = how.first.seed + number * (how.n_pool + how.n_children)
        self._walk: Walk | None = None
        self._found: list[Member] = []

    @property
    def left(self) -> int:
        """Layers that may still be run."""
        if self.how.first.over:
            return 0
        return self.descent.rules.max_iter - len(self.history)

    def run(self, starts: Iterable[Tensor]) -> None:
        """From the starts to the last child. Each start is run before the next one is seeded.

        No start is seeded after the deadline.
        """
        for place, centers in enumerate(starts):
            self.take([centers], place)
            if self.how.first.over:
                return
        self.breed()

    def take(self, starts: list[Tensor], first: int = 0) -> None:
        """Relocate from some starts; `first`: number of starts before them."""
        most = self.descent.rules.max_iter // self.how.n_pool
        self._generation(starts, first, self.how.first.patience, most)

    def breed(self) -> None:
        """Make the children, until there are enough or the best solution has no error left."""
        how = self.how
        taken, born = len(self.pool.members) > 1, 0
        while self._may_improve() and born < how.n_children and self.left > how.together:
            numbers = range(born, min(born + how.together, how.n_children))
            begin = [self._child(number, mutate=not taken) for number in numbers]
            most = self.left // len(begin)
            new = self._generation(begin, how.n_pool + born, how.child_patience, most)
            taken = any(new) and len(self.pool.members) > 1
            born += len(new)

    def _may_improve(self) -> bool:
        best = self.pool.members[0]
        return len(best.centers) > 1 and best.objective > 0

    def outcome(self) -> Outcome | None:
        """The best solution so far, those of an interrupted generation included."""
        if self._walk is not None and self._walk.history:
            self._found.append(self._measured(self._walk.centers))
        self._enter()
        if not self.pool.members:
            return None
        return finished(self.descent, self.pool.members[0].centers, self.history)

    def _child(self, number: int, mutate: bool) -> Tensor:
        session = self.descent.session
        centers = self.pool.united(session, self.seed, number)
        return mutated(session, centers, self.seed, number) if mutate else centers

    def _generation(self, begin: list[Tensor], first: int, patience: int, most: int) -> list[bool]:
        """Relocate from each of these centers, by so many layers at most.

        first: number of solutions before them.
        """
        for at in range(0, len(begin), self.how.together):
            some = begin[at : at + self.how.together]
            if not self._in_one_call(some, first + at, patience, most):
                for number, centers in enumerate(some, first + at):
                    self._found.append(self._relocated(number, centers, patience, most))
        return self._enter()

    def _in_one_call(self, begin: list[Tensor], first: int, patience: int, most: int) -> bool:
        """Relocate by a task of the engine, if it has one."""
        how = replace(self.how.first, patience=patience)
        descent = replace(self.descent, rules=replace(self.descent.rules, max_iter=most))
        seeds = range(self.seed + first, self.seed + first + len(begin))
        done = how.in_one_call(descent, begin, seeds)
        for walked in done or []:
            self._found.append(Member(walked.centers, walked.masses, walked.objective))
            for objective in walked.history:
                self.history.append(min([objective, *self.history[-1:]]))
        if any(walked.interrupted for walked in done or []):
            raise KeyboardInterrupt
        return done is not None

    def _enter(self) -> list[bool]:
        """Enter the solutions that were found in the pool."""
        found, self._found = self._found, []
        return [self.pool.enter(member) for member in found]

    def _relocated(self, number: int, centers: Tensor, patience: int, most: int) -> Member:
        how = replace(self.how.first, seed=self.seed + number, patience=patience)
        rules = replace(self.descent.rules, max_iter=most)
        descent = replace(self.descent, rules=rules, callback=self._hear)
        self.descent.session.forget()
        self._walk = Walk(how, descent, 0, centers)
        self._walk.run()
        member = self._measured(self._walk.centers)
        self._walk = None
        return member

    def _measured(self, centers: Tensor) -> Member:
        """A pass over the points: masses and objective of these centers."""
        session = self.descent.session
        last = self.descent.plan.finish(session, centers.to(session.layout.dtype))
        assert last.masses is not None
        return Member(centers, last.masses, last.inertia)

    def _hear(self, progress: Progress) -> None:
        """Note a layer: its number among all of them, and the lowest objective so far."""
        unit = self.descent.session.layout.weight_unit
        lowest = min([progress.objective / unit, *self.history[-1:]])
        self.history.append(lowest)
        if self.descent.callback is not None:
            number = len(self.history) - 1
            heard = replace(
                progress, start=self.number, iteration=number, objective=lowest * unit
            )  # fmt: skip
            self.descent.callback(heard)
