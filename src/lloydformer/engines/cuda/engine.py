"""The CUDA engine: folds and tasks by kernels where there are any, the others by torch."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeGuard

import torch

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.engines.chunked import ChunkedSession
from lloydformer.engines.cuda.folds import FOLDS
from lloydformer.engines.cuda.launches import make_ready
from lloydformer.engines.cuda.nvrtc import CompileError
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.tasks import TASKS
from lloydformer.plans.session import Fold, Task


class Cuda:
    """Runs folds on the GPU that the points are on."""

    name = "cuda"

    @staticmethod
    def reads(blocks: Blocks) -> TypeGuard[TensorBlocks]:
        """Can the kernels read these data? Dense rows in the memory of a GPU."""
        return isinstance(blocks, TensorBlocks) and blocks.device.type == "cuda"

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator["CudaSession"]:
        if not self.reads(blocks):
            raise ValueError(
                'engine: found "cuda" for data that are not on a GPU; use "native" or "chunked"'
            )
        with ExitStack() as resources, torch.cuda.device(blocks.device):
            make_ready(blocks.device)
            session = CudaSession(blocks, 1, resources)
            resources.callback(session.close)
            yield session


class CudaSession(ChunkedSession):
    """Points on a GPU; folds and tasks without a kernel run as in the chunked engine."""

    def __init__(self, blocks: TensorBlocks, n_threads: int, resources: ExitStack) -> None:
        super().__init__(blocks, n_threads, resources)
        self.points = PointsOnGpu(blocks, self.state, super().fold)

    def fold(self, fold: Fold) -> Any:
        kernel, summary = FOLDS.get(type(fold)), None
        self.state.reclaim()
        with self._all_or_forgotten(), suppress(torch.OutOfMemoryError):  # the plain one takes less
            summary = None if kernel is None else self._compiled(kernel, fold)
        if summary is not None:
            return summary
        self.points.labelled = False
        return super().fold(fold)

    def run(self, task: Task) -> Any | None:
        kernel = TASKS.get(type(task))
        if kernel is None:
            return None
        self.state.reclaim()
        with suppress(torch.OutOfMemoryError), self._all_or_forgotten():  # step by step takes less
            return self._compiled(kernel, task)
        return None

    def _compiled(self, kernel: Callable[[PointsOnGpu, Any], Any], work: Fold | Task) -> Any:
        """Run a kernel; if it cannot be compiled from CUDA C++, one in Triton or none."""
        try:
            return kernel(self.points, work)
        except CompileError as error:
            self.points.without_cpp(error)
            return kernel(self.points, work)

    def forget(self) -> None:
        super().forget()
        self.points.forget()

    def close(self) -> None:
        """Free the memory of the kernels; the points refer to this session, and it to them."""
        del self.points
