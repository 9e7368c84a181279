"""What carries questions to the holders of parts, and their answers back."""

from typing import Any, Protocol, runtime_checkable

from lloydformer.engines.parts.holder import PartsAnswer


@runtime_checkable
class Transport(Protocol):
    """The way from a `PartsSession` to the parts.

    Parts are numbered, from 0 on. Every row is in exactly one part; a part begins and ends at a
    leaf of the layout (`cuts`). Each part is held by one `Holder`, which was made with the
    `Opening` of the session, in this process or in another one.

    The session may be the only one that asks (a client and its workers), or one of several that
    ask the same questions in the same order (ranks): then everyone must get the same answers.
    """

    def ask(self, question: Any) -> list[PartsAnswer]:
        """Put a question to everyone who holds parts, and return what `Holder.answer` returned.

        Answers may come in any order, and a holder without parts that the question is for may be
        left out. Together they are about every part that the question is for, exactly once; a part
        whose holder has vanished is given to another holder, which then answers that the state of
        this part is lost, and the session has it made again (`Replay`). Errors of a holder are
        raised here. It returns, or raises, in bounded time.
        """
        ...

    def fork(self) -> "Transport":
        """A way to the same rows, with a state of their own."""
        ...
