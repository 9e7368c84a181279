"""Answers of the parts in their order, so that a fit that was killed need not ask again.

The solver is a function of these answers and of its random numbers: with the same answers it
arrives where it was. Then the parts are asked again; as they have no state, the session makes it
by its journal (`Replay`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

from lloydformer.storage.pickles import pickled, unpickled_data


@dataclass(frozen=True)
class Milestone:
    """What a loop knows at the end of an iteration; stands for all answers before, of this loop.

    Attributes
    ----------
    loop : object
        The values of the loop.
    session : object
        Those of the session (`PartsSession.snapshot`).
    """

    loop: Any
    session: Any


Entry = tuple[bytes, bytes]
"""A digest of a question, and the answer, pickled: later changes of a tensor do not reach it."""


class LoopPlace(NamedTuple):
    """Where the entries of a loop begin, and what its milestones have in place of a question."""

    at: int
    digest: bytes


def _digest(asked: Any) -> bytes:
    return blake2b(pickled(asked), digest_size=16).digest()


class AnswerLog:
    """Answers, in the order of the questions; milestones replace those of a loop.

    A question that differs from the recorded one ends the record. For example, after Ctrl-C the
    log ends with the last labelling, which a fit that goes on does not ask for there.

    Parameters
    ----------
    entries : list of Entry
        Answers and milestones of a fit that was killed; none for a new fit.
    changed : callable
        Called after each new entry.
    """

    def __init__(self, entries: list[Entry], changed: Callable[[], None] = lambda: None) -> None:
        self.entries, self.changed, self._at = entries, changed, 0

    def answer(self, question: Any, ask: Callable[[], Any]) -> Any:
        """The answer to a question: the known one, or what `ask` returns."""
        digest = _digest(question)
        known = self._known(digest)
        if known is not None:
            return unpickled_data(known)
        found = ask()
        del self.entries[self._at :]
        self.entries.append((digest, pickled(found)))
        self._at += 1
        self.changed()
        return found

    def begin_loop(self, loop: Any) -> tuple[LoopPlace, Milestone | None]:
        """The place where a loop begins, and its last milestone if it has one.

        loop: all that decides what the loop does; a milestone of another one does not fit.
        """
        place = LoopPlace(self._at, _digest(loop))
        known = self._known(place.digest)
        return place, None if known is None else unpickled_data(known)

    def reach(self, place: LoopPlace, milestone: Milestone) -> None:
        """Put a milestone in place of all answers since `place`, unless later ones are known."""
        if self._at == len(self.entries):
            self.entries[place.at :] = [(place.digest, pickled(milestone))]
            self._at = place.at + 1
            self.changed()

    def _known(self, digest: bytes) -> bytes | None:
        if self._at == len(self.entries) or self.entries[self._at][0] != digest:
            return None
        self._at += 1
        return self.entries[self._at - 1][1]
