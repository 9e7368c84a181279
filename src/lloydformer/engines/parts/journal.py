"""How to make the state of the points again: the questions that have written it.

State that is lost with a worker is computed again. Of all questions so far only those are kept
whose columns have not been overwritten since: a few folds, or the seeds of k-means++ so far.
"""

from collections.abc import Iterable
from typing import Any

from lloydformer.engines.parts.questions import Delegate, Forget, PartsQuestion
from lloydformer.plans.session import Fold

COLUMNS = frozenset({"labels", "previous", "second", "distances", "trimmed"})


class Journal:
    """The questions that lead to the state of the points now, as `entries`."""

    def __init__(self) -> None:
        self.entries: tuple[PartsQuestion, ...] = ()

    def folds_for(self, columns: Iterable[str]) -> tuple[Fold, ...]:
        """The folds that write these columns as they are now."""
        kept, needed = list[Any](), frozenset(columns)
        for earlier in reversed(self.entries):
            asked = _asked(earlier)
            if frozenset(getattr(asked, "writes", ())) & needed:  # tasks declare nothing
                kept.append(asked)
                needed = _needed_before(earlier, needed)
        return tuple(reversed(kept))

    def note(self, question: PartsQuestion) -> None:
        """Add a question that has changed the state, and drop what it has made needless.

        The last question always stays: a session may know more of it than the columns hold.
        """
        kept, needed = [question], _needed_before(question, COLUMNS)
        for earlier in reversed(self.entries):
            writes = _columns(earlier)[0]
            if writes & needed:
                kept.append(earlier)
                needed = _needed_before(earlier, needed)
        self.entries = tuple(reversed(kept))


def _needed_before(question: PartsQuestion, needed: frozenset[str]) -> frozenset[str]:
    """The columns that matter before a question, if these matter after it."""
    writes, writes_from = _columns(question)
    return (needed - writes) | writes_from


def _columns(question: PartsQuestion) -> tuple[frozenset[str], frozenset[str]]:
    """The columns that a question overwrites, and those that what it writes depends on."""
    if isinstance(question, Forget):
        return frozenset({"previous"}), frozenset()
    asked = _asked(question)
    if not hasattr(asked, "writes"):
        return COLUMNS, COLUMNS
    return frozenset(asked.writes), frozenset(getattr(asked, "writes_from", ()))


def _asked(question: PartsQuestion) -> Any:
    """The fold or task of a question."""
    return question.arguments[0] if isinstance(question, Delegate) else vars(question).get("fold")
