"""Rows in the memory of the host, or mapped from a file, that are read on a GPU block by block."""

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

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

    While one block is read, the next ones are on their way: a thread copies them to memory that
    the GPU can fetch from, and the GPU fetches them. Only the state of the points stays there.

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
    """

    rows: TensorBlocks
    device: torch.device
    sample_weight: Tensor | None = None
    weight_unit: float = 1.0
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
        return _Stream(self.rows.points, self.layout)


class _Stream:
    """Blocks of rows one after the other, again and again, with the next ones on their way."""

    def __init__(self, points: Tensor, layout: Layout) -> None:
        self.points, self.layout = points, layout
        self._thread = ThreadPoolExecutor(1)
        self._copying = torch.cuda.Stream(layout.device)  # type: ignore[no-untyped-call]
        self._coming: deque[tuple[tuple[int, int], Future[Any]]] = deque()
        size = min(layout.part, layout.n_rows), layout.n_features
        self._fetched = [torch.empty(size, dtype=points.dtype, pin_memory=True) for _ in range(2)]
        self._buffers = [
            torch.empty(size, dtype=points.dtype, device=layout.device) for _ in range(_AHEAD + 1)
        ]
        for buffer in self._buffers:  # blocks may be on their way when the last reader is done
            buffer.record_stream(self._copying)
        events = (torch.cuda.Event() for _ in self._fetched)  # type: ignore[no-untyped-call]
        self._free = list(events)
        self._number = 0

    def read(self, start: int, stop: int) -> Tensor:
        """Rows [start, stop) on the GPU, until the next call."""
        if not self._coming or self._coming[0][0] != (start, stop):
            self._drain()
            self._ask((start, stop))
        done = torch.cuda.current_stream(self.layout.device).record_event()
        while len(self._coming) <= _AHEAD:
            self._ask(following(self._coming[-1][0], self.layout), done)
        buffer, arrived = self._coming.popleft()[1].result()
        torch.cuda.current_stream(self.layout.device).wait_event(arrived)
        return buffer

    def _ask(self, rows: tuple[int, int], done: torch.cuda.Event | None = None) -> None:
        """Send for some rows; the buffer that they go to is free when `done` has happened."""
        done = done or torch.cuda.current_stream(self.layout.device).record_event()
        self._coming.append((rows, self._thread.submit(self._send, rows, self._number, done)))
        self._number += 1

    def _send(self, rows: tuple[int, int], number: int, done: torch.cuda.Event) -> Any:
        start, stop = rows
        place = number % len(self._fetched)
        here = self._fetched[place][: stop - start]
        there = self._buffers[number % len(self._buffers)][: stop - start]
        self._free[place].synchronize()
        here.copy_(self.points[start:stop])
        with torch.cuda.stream(self._copying):
            self._copying.wait_event(done)
            there.copy_(here, non_blocking=True)
            self._free[place].record()
            return there, self._copying.record_event()

    def _drain(self) -> None:
        while self._coming:
            self._coming.popleft()[1].result()


def following(rows: tuple[int, int], layout: Layout) -> tuple[int, int]:
    """The rows that are read after these; after the last ones the first ones again."""
    start = rows[1] % layout.n_rows
    leaf_end = (start // layout.leaf + 1) * layout.leaf
    return start, min(start + layout.part, leaf_end, layout.n_rows)
