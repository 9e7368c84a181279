"""The native engine: dense points in memory go to the kernels, all else to the chunked engine."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeGuard

import torch
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import State
from lloydformer.engines.native.folds import FOLDS, Session
from lloydformer.engines.native.installed import kernels
from lloydformer.plans.contract import Fold, Run

_SMALL = 1 << 18
"""So few numbers are not worth a second thread."""
_ROOM = 1 << 27
"""Bytes of bounds for data that are mapped from a file."""


class Native:
    """Runs folds with kernels in C++, a number of threads, and with `bounded` skips work exactly.

    By default as many threads as both torch and OpenMP (`threadpoolctl`) are allowed. Labels are
    those of exact arithmetic wherever float64 can tell, also for float32.
    """

    name = "native"

    def __init__(
        self, n_threads: int | None = None, *, bounded: bool = True, instruction_set: str = ""
    ) -> None:
        kernels().isa(instruction_set)
        self.n_threads, self.bounded, self.instruction_set = n_threads, bounded, instruction_set

    @contextmanager
    def over(self, data: Blocks, state: State) -> Iterator[Run]:
        """A function that runs folds over these data, while threads for it are up."""
        n_threads = self.n_threads or allowed_threads()
        with Chunked(self.n_threads).over(data, state) as plain:
            if _in_rows(data):
                few = data.points.numel() <= _SMALL
                session = self._session(data, state, 1 if few else n_threads)
                yield partial(_run, plain, session)
            else:
                yield plain

    def _session(self, data: TensorBlocks, state: State, n_threads: int) -> Session:
        scaling = data.scaling
        rows = [data.origin, *([] if scaling is None else [scaling.shift, scaling.scale])]
        origin, *scaled = (row.to(data.dtype).contiguous().numpy() for row in rows)
        shift, scale = scaled or (None, None)
        weights = data.sample_weight
        folds = kernels().Folds(
            data.points.numpy(), origin, shift, scale,
            None if weights is None else weights.contiguous().numpy(), data.directions,
            data.farthest, data.mapped, n_threads, self._room(data), data.leaf,
            self.instruction_set,
        )  # fmt: skip
        return Session(folds, state, data.n_features, data.leaf)

    def _room(self, data: TensorBlocks) -> int:
        """Bytes that bounds may take in all: they are kept in memory, and mapped data are large."""
        if not self.bounded:
            return 0
        return _ROOM if data.mapped else sys.maxsize


def _in_rows(data: Blocks) -> TypeGuard[TensorBlocks]:
    """Kernels read rows one after the other, in memory or mapped into it."""
    return (
        isinstance(data, TensorBlocks) and data.device.type == "cpu" and data.points.is_contiguous()
    )


def allowed_threads() -> int:
    """As many as torch and OpenMP both allow."""
    return min(torch.get_num_threads(), _openmp_effective_n_threads())


def _run(plain: Run, session: Session, fold: Fold) -> Any:
    kernel = FOLDS.get(type(fold))
    found = None if kernel is None else kernel(session, fold)
    return plain(fold) if found is None else found
