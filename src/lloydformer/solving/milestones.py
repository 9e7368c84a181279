"""Milestones of a loop: what it knows after an iteration, for a fit that is resumed."""

from typing import Any

from lloydformer.engines.parts.answer_log import Milestone
from lloydformer.engines.parts.session import PartsSession
from lloydformer.plans.session import Session


class Milestones:
    """Those of one loop; none unless the session has an answer log.

    Parameters
    ----------
    session : Session
        The session that the loop uses; it gets the state of the last milestone, if there is one.
    loop : object
        All that decides what the loop does: plan, rules, initial centers, ...

    Attributes
    ----------
    known : object
        The values of the loop at the last milestone; None: it begins.
    """

    def __init__(self, session: Session, *loop: Any) -> None:
        self.known: Any = None
        self._session: PartsSession | None = None
        if isinstance(session, PartsSession) and session.answer_log is not None:
            self._session = session
            self._place, last = session.answer_log.begin_loop(loop)
            if last is not None:
                session.restore(last.session)
                self.known = last.loop

    def reach(self, values: Any) -> None:
        """Note the values of the loop after an iteration."""
        if self._session is not None and self._session.answer_log is not None:
            milestone = Milestone(values, self._session.snapshot())
            self._session.answer_log.reach(self._place, milestone)
