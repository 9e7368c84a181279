"""The processes of one job, and how they exchange values: one all-gather for each exchange."""

import atexit
import io
import os
import pickle
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

V = TypeVar("V")

LIMIT = timedelta(minutes=10)
"""How long a rank waits for the others, in a process group that is started here."""
_HEAD = struct.Struct("<q")
"""Before every message: its number of bytes."""
_SMALLEST = 1 << 10


class RankError(RuntimeError):
    """An error of another rank."""


@dataclass
class Ranks:
    """This process among others that run the same program.

    Every method is called by all ranks, in the same order.

    Attributes
    ----------
    rank, size : int
        The number of this process, and how many there are.
    device : torch.device
        Where messages are kept: the CPU for gloo, the GPU of this process for NCCL.
    """

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    _rooms: dict[object, int] = field(default_factory=dict)
    """Bytes of a message of each kind that every rank has room for, the same on all ranks."""

    def gather(self, value: V, kind: object = None) -> list[V]:
        """The values of all ranks, by their numbers.

        It takes one all-gather, and a second one if a message is longer than all before of its
        kind.
        """
        if self.size == 1:
            return [value]
        message = pickled(value)
        room = self._rooms.setdefault(kind, _SMALLEST)
        found = self._all_gather(message, room)
        longest = max(_HEAD.unpack_from(one)[0] for one in found)
        if longest > room:
            self._rooms[kind] = longest + longest // 8
            found = self._all_gather(message, self._rooms[kind])
        return [pickle.loads(memoryview(one)[_HEAD.size :]) for one in found]

    def gather_results(self, function: Callable[[], V], kind: object = None) -> list[V]:
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
        found = self.gather((value, None if error is None else _words(error)), kind)
        if error is not None:
            raise error
        for rank, (_, words) in enumerate(found):
            if words is not None:
                raise _error_of(rank, *words)
        return [one for one, _ in found]

    def from_first(self, function: Callable[[], V]) -> V:
        """Call a function on rank 0 alone, and return its result, or raise its error, on all."""
        return self.gather_results(lambda: function() if self.rank == 0 else None)[0]  # type: ignore[return-value]

    def _all_gather(self, message: bytes, room: int) -> list[bytes]:
        """Messages of all ranks with their heads; those longer than the room are cut off."""
        padded = bytearray(_HEAD.size + room)
        cut = message[:room]
        padded[: _HEAD.size] = _HEAD.pack(len(message))
        padded[_HEAD.size : _HEAD.size + len(cut)] = cut
        mine = torch.frombuffer(padded, dtype=torch.uint8).to(self.device)
        others: list[Tensor] = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(others, mine)
        return [other.cpu().numpy().tobytes() for other in others]


class _Pickler(pickle.Pickler):
    """Tensors by value: not the whole storage that they are a view of, and on the CPU."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return torch.from_numpy, (value.detach().cpu().numpy().copy(),)
        return NotImplemented


def pickled(value: Any) -> bytes:
    """A value as it is sent."""
    stream = io.BytesIO()
    _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return stream.getvalue()


def _words(error: Exception) -> tuple[str, str]:
    for kind in (ValueError, TypeError):
        if isinstance(error, kind):
            return kind.__name__, str(error)
    return "RankError", f"{type(error).__name__}: {error}"


def _error_of(rank: int, kind: str, words: str) -> Exception:
    kinds = {"ValueError": ValueError, "TypeError": TypeError, "RankError": RankError}
    return kinds[kind](f"rank {rank}: {words}")


def joined_ranks() -> Ranks:
    """The ranks of torch's default process group, which is started if `torchrun` asks for one.

    Without a process group and without `torchrun` this process is the only rank.
    """
    if not dist.is_available():
        return Ranks()
    if not dist.is_initialized():
        if int(os.environ.get("WORLD_SIZE", "1")) == 1 or "MASTER_ADDR" not in os.environ:
            return Ranks()
        dist.init_process_group("gloo", timeout=LIMIT)
        atexit.register(_leave)
    device = torch.device("cpu")
    if "cpu:" not in str(dist.get_backend_config()):  # NCCL alone
        device = torch.device("cuda", torch.cuda.current_device())
    return Ranks(dist.get_rank(), dist.get_world_size(), device)


def _leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()
