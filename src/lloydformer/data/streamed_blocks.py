"""Rows that do not fit into the memory of a GPU, streamed to it block by block.

While the GPU works on one block, the next two are being copied. A buffer is reused only after the
work on it, which events record.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.rows import Rows
from lloydformer.fork_safety import cached_property

# Bytes of a block, and blocks that are prefetched; chosen by hand. A copy takes 1 ms at the nominal
# 64 GB/s of PCIe 5, long enough to hide the overhead of starting it.
_BLOCK = 64 << 20
_PREFETCHED = 2


@dataclass(frozen=True, eq=False)
class StreamedBlocks:
    """Rows that do not fit into the memory of a GPU; every pass over them copies them there.

    The GPU copies pinned rows by itself; others go through pinned buffers that a thread fills. Only
    the state of the points stays on the GPU.

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
    pinned : object or None
        Keeps the rows pinned as long as it lives; None if they are not pinned.
    """

    rows: TensorBlocks
    device: torch.device
    sample_weight: Tensor | None = None
    weight_unit: float = 1.0
    pinned: object | None = None
    first_row: ClassVar[int] = 0
    mapped: ClassVar[bool] = False  # readers need not prefetch: `_Stream` does

    @property
    def ends(self) -> Tensor:
        return self.rows.ends

    @cached_property
    def layout(self) -> Layout:
        on_host = self.rows.layout
        row_bytes = on_host.n_features * on_host.dtype.itemsize
        return replace(
            on_host,
            device=self.device,
            origin=on_host.origin.to(self.device),
            part=max(1, min(on_host.part, _BLOCK // row_bytes)),
            weighted=self.sample_weight is not None,
            weight_unit=self.weight_unit,
        )

    @cached_property
    def _on_gpu(self) -> TensorBlocks:
        """Blocks without rows, on the GPU, with the coordinates of these."""
        none = self.rows.points[:0].to(self.device)
        return replace(self.rows, points=none, given_origin=self.layout.origin, mapped=False)

    def prefetch(self, start: int, stop: int) -> None:
        """Do nothing: the next rows are always on their way."""

    def read(self, start: int, stop: int) -> Rows:
        if stop - start > self.layout.part:  # more than a block
            return self._on_gpu.to_rows(self.rows.points[start:stop].to(self.device))
        return self._on_gpu.to_rows(self._stream.read(start, stop))

    def take(self, rows: Tensor) -> Tensor:
        return self.rows.take(rows.cpu()).to(self.device)

    def weights(self, start: int, stop: int) -> Tensor | None:
        return None if self.sample_weight is None else self.sample_weight[start:stop]

    def subset(self, rows: Tensor) -> TensorBlocks:
        """Return a copy of some rows on the GPU, in the same coordinates."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        taken = self.rows.points[rows.cpu()].to(self.device)
        return replace(self._on_gpu, points=taken, sample_weight=weights, known_ends=self.ends)

    @cached_property
    def _stream(self) -> "_Stream":
        size = min(self.layout.part, self.layout.n_rows), self.layout.n_features
        like = torch.empty(size, dtype=self.layout.dtype, device=self.device)
        copier = _StagedCopier(like) if self.pinned is None else _PinnedCopier(self.device)
        return _Stream(self.rows.points, self.layout, like, copier)


# Returns the event that rows are on the GPU; waits until the copy has been started.
Arrival = Callable[[], torch.cuda.Event]


class _PinnedCopier:
    """Copies rows from pinned memory, on a stream of its own."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def copy(self, rows: Tensor, block: Tensor, free: torch.cuda.Event) -> Arrival:
        """Copy rows to a block of the GPU, once it is free."""
        with torch.cuda.stream(self.stream):
            self.stream.wait_event(free)
            block.copy_(rows, non_blocking=True)
            arrived = self.stream.record_event()
        return lambda: arrived


class _StagedCopier:
    """Copies rows from any memory: a thread fills one of two pinned buffers, then the other."""

    def __init__(self, like: Tensor) -> None:
        self._copier, self._thread = _PinnedCopier(like.device), ThreadPoolExecutor(1)
        self.stream = self._copier.stream
        self._buffers = [torch.empty_like(like, device="cpu", pin_memory=True) for _ in range(2)]
        self._copied: list[torch.cuda.Event | None] = [None, None]
        self._number = 0

    def copy(self, rows: Tensor, block: Tensor, free: torch.cuda.Event) -> Arrival:
        """Copy rows to a block of the GPU, once it is free."""
        return self._thread.submit(self._copy, rows, block, free).result

    def _copy(self, rows: Tensor, block: Tensor, free: torch.cuda.Event) -> torch.cuda.Event:
        place = self._number % 2
        buffer, copied = self._buffers[place][: len(rows)], self._copied[place]
        if copied is not None:  # the GPU may still be reading the rows before
            copied.synchronize()
        buffer.copy_(rows)
        self._copied[place] = arrived = self._copier.copy(buffer, block, free)()
        self._number += 1
        return arrived


class _Pending(NamedTuple):
    """Rows [start, stop) that are being copied to a block of the GPU."""

    rows: tuple[int, int]
    block: Tensor
    arrival: Arrival


class _Stream:
    """Blocks of rows in order, pass after pass, with the next ones being copied."""

    def __init__(
        self, points: Tensor, layout: Layout, like: Tensor, copier: _PinnedCopier | _StagedCopier
    ) -> None:
        self.points, self.layout, self._copier = points, layout, copier
        self._pending: deque[_Pending] = deque()
        self._buffers = [like, *(torch.empty_like(like) for _ in range(_PREFETCHED))]
        for buffer in self._buffers:
            # Copies may be under way when the last reader is done. torch must not give the memory
            # to others before they have finished.
            buffer.record_stream(copier.stream)
        self._number = 0

    def read(self, start: int, stop: int) -> Tensor:
        """Return rows [start, stop) on the GPU; valid until the next call."""
        if not self._pending or self._pending[0].rows != (start, stop):
            while self._pending:  # another order than the usual one: drop what was prefetched
                self._pending.popleft().arrival()
            self._request((start, stop))
        while len(self._pending) <= _PREFETCHED:
            self._request(next_range(self._pending[-1].rows, self.layout))
        _, block, arrival = self._pending.popleft()
        torch.cuda.current_stream(self.layout.device).wait_event(arrival())
        return block

    def _request(self, rows: tuple[int, int]) -> None:
        """Start the copy of some rows to the next buffer.

        Work on the rows that were in it has been queued before, so the buffer is free once the
        current stream has come to this point.
        """
        free = torch.cuda.current_stream(self.layout.device).record_event()
        block = self._buffers[self._number % len(self._buffers)][: rows[1] - rows[0]]
        arrival = self._copier.copy(self.points[slice(*rows)], block, free)
        self._pending.append(_Pending(rows, block, arrival))
        self._number += 1


def next_range(rows: tuple[int, int], layout: Layout) -> tuple[int, int]:
    """Return the rows that are read after these; after the last ones the first ones again."""
    start = rows[1] % layout.n_rows
    leaf_end = (start // layout.leaf + 1) * layout.leaf
    return start, min(start + layout.part, leaf_end, layout.n_rows)
