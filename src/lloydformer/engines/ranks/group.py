"""The processes of one job, and how they exchange values: one all-gather for each exchange."""

import atexit
import os
import pickle
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor

from lloydformer.data.storage.pickles import dump_data

V = TypeVar("V")
E = TypeVar("E", bound=BaseException)

# How long a rank waits for the others, in a process group that is started here.
LIMIT = timedelta(minutes=10)
# Before every message: its length, the number of the exchange, a checksum, what it is about.
_HEAD = struct.Struct("<qqI60s")
# Bytes of a message that one exchange has room for, at first and at most. The room grows with the
# messages of a fit, so that most exchanges are one all-gather; above the limit a second one is
# cheaper than to fill up every message.
_FIRST_ROOM, _MOST_ROOM = 1 << 10, 1 << 18
# The kind of the message of a rank whose fit has ended with an error.
_FAILED = "failed"


class RankError(RuntimeError):
    """An error of another rank, or ranks that call different things."""


@dataclass(frozen=True)
class MessageKind:
    """The topic of a message: all ranks must send the same kind at the same time.

    Attributes
    ----------
    name : str
        In a word, for error messages.
    checksum : int
        Of what must be the same on all ranks.
    """

    name: str = "values"
    checksum: int = 0

    @classmethod
    def of(cls, name: str, value: Any) -> "MessageKind":
        """With the checksum of a value."""
        return cls(name, crc32(dump_data(value)))


VALUES = MessageKind()


@dataclass
class Ranks:
    """This process among others that run the same program.

    Every method is called by all ranks, in the same order. If one is not, the next exchange raises
    a `RankError` on all of them.

    Attributes
    ----------
    rank, size : int
        The number of this process, and how many there are.
    device : torch.device
        Where messages are kept: the CPU for gloo, the GPU of this process for NCCL.
    _room : int
        Bytes of a message that every rank has room for; always the same on all ranks.
    _number : int
        Exchanges so far.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    _room: int = _FIRST_ROOM
    _number: int = 0

    def gather(self, value: V, kind: MessageKind = VALUES) -> list[V]:
        """Return the values of all ranks, by their numbers.

        It takes one all-gather, and a second one if a message is longer than all before, or very
        long.

        Raises
        ------
        RankError
            If the ranks do not send the same kind of message, or one of them has failed.
        """
        if self.size == 1:
            return [value]
        message, room = dump_data(value), self._room
        messages = self._exchange(message, kind)
        heads = [_Head.of(one) for one in messages]
        self._check(heads, messages)
        longest = max(one.length for one in heads)
        parts = [one[_HEAD.size :] for one in messages]
        if longest > room:
            rest = self._all_gather(message[room:], longest - room)
            parts = [first + second for first, second in zip(parts, rest, strict=True)]
            # An eighth more, so that a slightly longer message does not need a second exchange.
            self._room = min(longest + longest // 8, _MOST_ROOM)
        return [pickle.loads(part) for part in parts]

    def _exchange(self, message: bytes, kind: MessageKind) -> list[bytes]:
        """Return heads and beginnings of the messages of all ranks, as far as there is room."""
        self._number += 1
        head = _HEAD.pack(len(message), self._number, kind.checksum, kind.name.encode()[:60])
        return self._all_gather(head + message[: self._room], _HEAD.size + self._room)

    def _check(self, heads: "list[_Head]", messages: list[bytes]) -> None:
        """Raise, on all ranks, if their messages do not belong together."""
        for rank, (head, content) in enumerate(zip(heads, messages, strict=True)):
            if head.name == _FAILED:
                raise _mark(_make_error(rank, *pickle.loads(content[_HEAD.size :])))
        # All but the length: ranks send values of different sizes.
        wrong = next((rank for rank, head in enumerate(heads) if head[1:] != heads[0][1:]), None)
        if wrong is not None:
            first, other = (
                f"exchange {head.number} ({head.name})" for head in (heads[0], heads[wrong])
            )
            what = f"{first} with other values" if first == other else other
            raise _mark(
                RankError(
                    f"ranks are out of step: rank 0 is at {first} and rank {wrong} at {what}; call "
                    "fit on all ranks in the same order, with the same parameters"
                )
            )

    def gather_results(self, function: Callable[[], V], kind: MessageKind = VALUES) -> list[V]:
        """Call a function on every rank, and gather what it returns.

        Raises
        ------
        Exception
            If it raises on some rank, then on all: there its own error, elsewhere the first one of
            the others. `ValueError` and `TypeError` stay what they are; others are a `RankError`.
        """
        error: Exception | None = None
        value: Any = None
        try:
            value = function()
        except Exception as raised:
            if self.size == 1:
                raise
            error = raised
        results = self.gather((value, None if error is None else _describe(error)), kind)
        if error is not None:
            raise _mark(error)
        for rank, (_, words) in enumerate(results):
            if words is not None:
                raise _mark(_make_error(rank, *words))
        return [result for result, _ in results]

    def from_first(self, function: Callable[[], V]) -> V:
        """Call a function on rank 0 alone, and return its result, or raise its error, on all."""
        return self.gather_results(lambda: function() if self.rank == 0 else None)[0]  # type: ignore[return-value]

    @contextmanager
    def together(self, name: str) -> Iterator[None]:
        """End this block well on all ranks, or on all with the error of the first one that failed.

        An error that the others know of already is passed on.
        """
        try:
            yield
        except BaseException as error:
            if self.size > 1 and not getattr(error, _KNOWN, False):
                kind, words = _describe(error)
                with suppress(Exception):  # the others are gone
                    # They get it in their next exchange, whatever that is about. A character has at
                    # most 4 bytes: the message fits into the smallest room.
                    short = dump_data((kind, words[: _FIRST_ROOM // 4]))
                    self._exchange(short, MessageKind(_FAILED))
                _mark(error)
            raise
        self.gather(None, MessageKind(f"end of {name}"))

    def _all_gather(self, message: bytes, size: int) -> list[bytes]:
        """Return the messages of all ranks, each filled up to the same number of bytes."""
        # As bytes of one length: `all_gather_object` would exchange the lengths first.
        padded = bytearray(size)
        padded[: len(message)] = message
        mine = torch.frombuffer(padded, dtype=torch.uint8).to(self.device)
        others: list[Tensor] = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(others, mine)
        return [other.cpu().numpy().tobytes() for other in others]


_KNOWN = "known_to_all_ranks"


def _mark(error: E) -> E:
    """Mark an error that all ranks raise, or know of."""
    setattr(error, _KNOWN, True)
    return error


class _Head(NamedTuple):
    """The head of a message."""

    length: int
    number: int
    checksum: int
    name: str

    @classmethod
    def of(cls, content: bytes) -> "_Head":
        length, number, checksum, name = _HEAD.unpack_from(content)
        return cls(length, number, checksum, name.rstrip(b"\0").decode(errors="replace"))


def _describe(error: BaseException) -> tuple[str, str]:
    """Return the kind of an error, and its words."""
    for kind in (ValueError, TypeError):
        if isinstance(error, kind):
            return kind.__name__, str(error)
    return "RankError", f"{type(error).__name__}: {error}"


def _make_error(rank: int, kind: str, words: str) -> Exception:
    """Return the error of another rank, as this one raises it."""
    kinds = {"ValueError": ValueError, "TypeError": TypeError, "RankError": RankError}
    return kinds[kind](f"rank {rank}: {words}")


# The default process group, and its ranks, which count their exchanges.
_JOINED: list[tuple[Any, Ranks]] = []


def join_ranks() -> Ranks:
    """Return the ranks of torch's default process group; started if `torchrun` asks for one.

    Without a process group and without `torchrun` this process is the only rank.
    """
    if not dist.is_available():
        return Ranks()
    if not dist.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "MASTER_ADDR" not in os.environ:
            return Ranks()
        dist.init_process_group("gloo", timeout=LIMIT)
        atexit.register(_leave)
    if not _JOINED or _JOINED[0][0] is not dist.group.WORLD:
        device = torch.device("cpu")
        if "cpu:" not in str(dist.get_backend_config()):  # NCCL alone
            device = torch.device("cuda", torch.cuda.current_device())
        _JOINED[:] = [(dist.group.WORLD, Ranks(dist.get_rank(), dist.get_world_size(), device))]
    return _JOINED[0][1]


def _leave() -> None:
    """End the threads of the process group: a reference that outlives them aborts the process."""
    _JOINED.clear()
    if dist.is_initialized():
        dist.destroy_process_group()
