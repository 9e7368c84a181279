"""Rows in the memory of the host, or mapped from a file, that are read on a GPU block by block."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.rows import Rows

_BLOCK = 64 << 20
"""Bytes of a block."""
_AHEAD = 2
"""Blocks that are on their way while one is read."""


@dataclass(frozen=True, eq=False)
class StreamedBlocks:
    """Rows that do not fit into the memory of a GPU; every pass over them copies them there.

    While one block is read, the GPU fetches the next ones: from where they are, if it can, or from
    memory that a thread copies them to. Only the state of the points stays on the GPU.

    Attributes
    ----------
    rows : TensorBlocks
        On the CPU.
    device : torch.device
        The GPU.
    sample_weight : Tensor of shape (n,) or None
        Weights in float64, on the GPU.
    weight_unit : float
        The unit of the weights, a power of two.
    keeps_pinned : object or None
        If it is not None, the GPU can fetch rows from where they are as long as it is kept.
    """

    rows: TensorBlocks
    device: torch.device
    sample_weight: Tensor | None = None
    weight_unit: float = 1.0
    keeps_pinned: object | None = None
    first_row: ClassVar[int] = 0
    mapped: ClassVar[bool] = False
    """Whoever reads need not ask for rows beforehand."""

    @property
    def ends(self) -> Tensor:
        return self.rows.ends

    @cached_property
    def layout(self) -> Layout:
        here = self.rows.layout
        width = here.n_features * here.dtype.itemsize
        part = max(1, min(here.part, _BLOCK // width))
        origin = here.origin.to(self.device)
        return replace(
            here, device=self.device, origin=origin, part=part,
            weighted=self.sample_weight is not None, weight_unit=self.weight_unit,
        )  # fmt: skip

    @cached_property
    def _there(self) -> TensorBlocks:
        """Blocks on the GPU that read rows as these do; without rows."""
        none = self.rows.points[:0].to(self.device)
        return replace(self.rows, points=none, seen_from=self.layout.origin, mapped=False)

    def prefetch(self, start: int, stop: int) -> None:
        """Nothing to do: the next rows are always on their way."""

    def read(self, start: int, stop: int) -> Rows:
        if stop - start > self.layout.part:  # more than a block
            return self._there.rows_of(self.rows.points[start:stop].to(self.device))
        return self._there.rows_of(self._stream.read(start, stop))

    def take(self, rows: Tensor) -> Tensor:
        return self.rows.take(rows.cpu()).to(self.device)

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def subset(self, rows: Tensor) -> TensorBlocks:
        """A copy of some rows on the GPU, in the same coordinates."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        taken = self.rows.points[rows.cpu()].to(self.device)
        return replace(self._there, points=taken, sample_weight=weights, known_ends=self.ends)

    @cached_property
    def _stream(self) -> "_Stream":
        size = min(self.layout.part, self.layout.n_rows), self.layout.n_features
        like = torch.empty(size, dtype=self.layout.dtype, device=self.device)
        send = _Staged(like) if self.keeps_pinned is None else _Direct(self.device)
        return _Stream(self.rows.points, self.layout, like, send)


Arrived = Callable[[], torch.cuda.Event]
"""Returns the event that rows are on the GPU; it may wait until they are being fetched."""


class _Direct:
    """Sends rows from memory that the GPU can fetch from."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __call__(self, rows: Tensor, block: Tensor, free: torch.cuda.Event) -> Arrived:
        """Rows to a block of the GPU, when that is free."""
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(free)
            block.copy_(rows, non_blocking=True)
            arrived = self.stream.record_event()
        return lambda: arrived


class _Staged:
    """Sends rows from anywhere: a thread copies them to memory that the GPU can fetch from."""

    def __init__(self, like: Tensor) -> None:
        self._direct, self._thread = _Direct(like.device), ThreadPoolExecutor(1)
        self.stream = self._direct.stream
        self._memory = [torch.empty_like(like, device="cpu", pin_memory=True) for _ in range(2)]
        self._fetched: list[torch.cuda.Event | None] = [None, None]
        self._number = 0

    def __call__(self, rows: Tensor, block: Tensor, free: torch.cuda.Event) -> Arrived:
        return self._thread.submit(self._send, rows, block, free).result

    def _send(self, rows: Tensor, block: Tensor, free: torch.cuda.Event) -> torch.cuda.Event:
        place = self._number % 2
        memory, fetched = self._memory[place][: len(rows)], self._fetched[place]
        if fetched is not None:
            fetched.synchronize()
        memory.copy_(rows)
        self._fetched[place] = arrived = self._direct(memory, block, free)()
        self._number += 1
        return arrived


class _Coming(NamedTuple):
    """Rows [start, stop) that are on their way to a block of the GPU."""

    rows: tuple[int, int]
    block: Tensor
    arrived: Arrived


class _Stream:
    """Blocks of rows one after the other, again and again, with the next ones on their way."""

    def __init__(
        self, points: Tensor, layout: Layout, like: Tensor, send: "_Direct | _Staged"
    ) -> None:
        self.points, self.layout, self._send = points, layout, send
        self._coming: deque[_Coming] = deque()
        self._buffers = [like, *(torch.empty_like(like) for _ in range(_AHEAD))]
        for buffer in self._buffers:  # blocks may be on their way when the last reader is done
            buffer.record_stream(send.stream)
        self._number = 0

    def read(self, start: int, stop: int) -> Tensor:
        """Rows [start, stop) on the GPU, until the next call."""
        if not self._coming or self._coming[0].rows != (start, stop):
            while self._coming:
                self._coming.popleft().arrived()
            self._ask((start, stop))
        while len(self._coming) <= _AHEAD:
            self._ask(following(self._coming[-1].rows, self.layout))
        _, block, arrived = self._coming.popleft()
        torch.cuda.current_stream(self.layout.device).wait_event(arrived())
        return block

    def _ask(self, rows: tuple[int, int]) -> None:
        """Send for some rows; the buffer that they go to is free once this stream is here."""
        free = torch.cuda.current_stream(self.layout.device).record_event()
        block = self._buffers[self._number % len(self._buffers)][: rows[1] - rows[0]]
        arrived = self._send(self.points[slice(*rows)], block, free)
        self._coming.append(_Coming(rows, block, arrived))
        self._number += 1


def following(rows: tuple[int, int], layout: Layout) -> tuple[int, int]:
    """The rows that are read after these; after the last ones the first ones again."""
    start = rows[1] % layout.n_rows
    leaf_end = (start // layout.leaf + 1) * layout.leaf
    return start, min(start + layout.part, leaf_end, layout.n_rows)
