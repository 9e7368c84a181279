"""The CUDA engine: Lloyd's and spherical k-means by kernels, all else by torch on the device."""

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.engines.chunked import ChunkedSession
from lloydformer.engines.cuda.backend import CUDA_CPP, TORCH, backend
from lloydformer.engines.cuda.hopper import hopper_steps
from lloydformer.engines.cuda.launches import make_ready
from lloydformer.engines.cuda.nvrtc import CompileError
from lloydformer.engines.cuda.passes import WIDEST, moments
from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.seeds import knows, seeds
from lloydformer.engines.cuda.steps import Steps
from lloydformer.engines.cuda.work import EMPTY, GOING, RECORDS, SETTLED, Work
from lloydformer.plans.assign import (
    Cosines,
    Farthest,
    FarthestPoints,
    Measure,
    Moments,
    Nearest,
)
from lloydformer.plans.contract import Ran
from lloydformer.plans.means import Iterations
from lloydformer.plans.seeding import Seeds
from lloydformer.plans.session import Fold, Task

_SAMPLE = 256
"""Rows that tell the size of most coordinates."""
_MOST_ROWS = 1 << 30
"""Kernels count rows in 32 bits."""


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
            yield CudaSession(blocks, 1, resources)


class CudaSession(ChunkedSession):
    """Points on a GPU; folds and tasks without a kernel run as in the chunked engine."""

    def __init__(self, blocks: TensorBlocks, n_threads: int, resources: ExitStack) -> None:
        super().__init__(blocks, n_threads, resources)
        self._tensors = blocks
        self._steps: tuple[Work, Steps] | None = None
        self._no_room = False
        self.labelled = False
        """The last fold was one of kernels that label points, so the state has these labels."""
        self.changed: Tensor | None = None
        """Labels that have changed in an iteration that was broken off for an empty cluster."""

    def fold(self, fold: Fold) -> Any:
        kernel = _FOLDS.get(type(fold))
        self.state.reclaim()
        with self._all_or_forgotten():
            summary = None if kernel is None else kernel(self, fold)
        if summary is not None:
            return summary
        self.labelled = False
        return super().fold(fold)

    def run(self, task: Task) -> Any | None:
        kernel = _TASKS.get(type(task))
        if kernel is None:
            return None
        self.labelled = False
        with self._all_or_forgotten():
            return kernel(self, task)

    def forget(self) -> None:
        super().forget()
        self.changed = None
        if self._steps is not None:
            self._steps[0].forget()

    @property
    def kernels(self) -> str:
        """What kernels this GPU runs."""
        return backend(self.layout.device)

    @cached_property
    def points(self) -> Points:
        """The rows as kernels read them. Scaled rows and directions are computed once."""
        blocks = self._tensors
        weights, heaviest = blocks.sample_weight, 1.0
        if weights is not None:
            weights, heaviest = weights.contiguous(), float(weights.max())
        if blocks.directions or blocks.scaling is not None:
            rows = blocks.seen()
            return Points(rows, torch.zeros_like(rows[0]), weights, blocks.reach, heaviest)
        rows = blocks.points.contiguous()
        return Points(rows, blocks.origin.contiguous(), weights, blocks.reach, heaviest)

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The summary of the fold `Moments`, on the CPU."""
        blocks, known = self._tensors, self._tensors.survey
        if self.kernels != CUDA_CPP or blocks.n_features > WIDEST or self.too_many_rows:
            weighted, count, plain, sums = (moment.cpu() for moment in super().fold(Moments()))
            return weighted, count, plain, sums
        whole = blocks.sample_weight is None and self.points.rows is blocks.points
        if known is None or not whole:
            return moments(self.points)
        squares, sums = known.seen_from(blocks.origin_on_host)
        total = torch.tensor(squares, dtype=torch.float64)
        count = torch.tensor(float(blocks.n_rows), dtype=torch.float64)
        return total, count, total, torch.from_numpy(sums)

    @property
    def too_many_rows(self) -> bool:
        return self.layout.n_rows > _MOST_ROWS

    @cached_property
    def exact(self) -> bool:
        """Are there kernels, and are sums in fixed point fine enough for these points?"""
        if self.kernels == TORCH or self.too_many_rows or self._no_room:
            return False
        try:
            return self._resolved()
        except torch.OutOfMemoryError:
            self._warn_of_memory()
            return False

    def _resolved(self) -> bool:
        _, count, plain, sums = (moment.numpy() for moment in self.moments)
        spread = float(plain / count - np.square(sums / count).sum()) / self.layout.n_features
        weights = self.points.weights
        lightest = 1.0 if weights is None else float(weights[weights > 0].min())
        typical = min(math.sqrt(max(spread, 0.0)), self._typical())
        return typical > 0 and self.points.resolves(typical, lightest)

    def _typical(self) -> float:
        """The size of most coordinates, which a few outliers do not change."""
        points = self.points
        rows = points.rows[:: max(1, points.n_rows // _SAMPLE)][:_SAMPLE]
        groups = torch.tensor_split((rows - points.origin).abs().double(), min(8, len(rows)))
        return float(torch.stack([group.mean() for group in groups]).median())

    def steps(self, n_clusters: int) -> tuple[Work, Steps] | None:
        """Kernels for so many centers; None if there are none for these points."""
        if self._steps is not None and len(self._steps[0].centers) == n_clusters:
            return self._steps
        self._steps = None  # its memory is free before that of the next one is asked for
        if self.kernels == TORCH or self.too_many_rows or self._no_room:
            return None
        try:
            work = Work.empty(self.points, n_clusters, self._tensors.directions)
            steps = self._steps_for(work)
        except torch.OutOfMemoryError:
            steps = None
            self._warn_of_memory()
        self._steps = None if steps is None else (work, steps)
        return self._steps

    def _steps_for(self, work: Work) -> Steps | None:
        """CUDA C++ where it knows the problem and compiles, else Triton where that runs."""
        if self.kernels == CUDA_CPP:
            with suppress(CompileError):
                steps = hopper_steps(self.points, work)
                if steps is not None:
                    return steps
        try:
            from lloydformer.engines.cuda.portable.steps import PortableSteps

            return PortableSteps(self.points, work)
        except torch.OutOfMemoryError:
            raise
        except (ImportError, OSError, RuntimeError):  # no Triton, or no compiler for it
            return None

    def _warn_of_memory(self) -> None:
        """Say once that the kernels' copy of the points does not fit."""
        self._no_room = True
        free, total = (size / 2**30 for size in torch.cuda.mem_get_info(self.layout.device))
        warnings.warn(
            "X: the copy of the points that kernels read does not fit into the memory of the GPU "
            f"({free:.1f} of {total:.1f} GiB are free); PyTorch runs without it, more slowly. "
            "Free memory or pass fewer rows",
            RuntimeWarning,
            stacklevel=2,
        )


def _moments(session: CudaSession, fold: Moments) -> Any:
    return session.moments


def _assigned(session: CudaSession, centers: Tensor) -> tuple[Work, Steps] | None:
    """Label the points by these centers, also in the state of the session."""
    known = session.steps(len(centers))
    if known is not None:
        work, steps = known
        steps.begin(centers, 0.0)
        steps.assign()
        session.state.column("labels").copy_(work.assigned)
        session.labelled = True
    return known


def _nearest(session: CudaSession, fold: Nearest) -> Any:
    known = _assigned(session, fold.centers) if session.exact else None
    if known is None:
        return None
    work, points = known[0], session.points
    sums = work.sums.double() / points.sum_unit
    masses = work.masses.double() / points.mass_unit
    changed = work.changed[0] + (0 if session.changed is None else session.changed)
    session.changed = None
    return sums, masses, changed


def _measure(session: CudaSession, fold: Measure) -> Any:
    adds = isinstance(fold, Cosines)
    known = _assigned(session, fold.centers) if not adds or session.exact else None
    if known is None:
        return None
    work, steps = known
    distances = session.state.column("distances")
    total, masses = steps.measure(distances), work.masses.double() / session.points.mass_unit
    if adds:  # the sum of w x c
        masses = (work.sums.double() / session.points.sum_unit * work.seen.double()).sum(dim=1)
    return total, masses


def _farthest(session: CudaSession, fold: Farthest) -> FarthestPoints | None:
    known = session.steps(len(fold.centers)) if session.labelled else None
    if known is None or not torch.equal(known[0].seen, fold.centers):
        return None
    away = torch.empty(session.layout.n_rows, dtype=fold.centers.dtype, device=fold.centers.device)
    known[1].measure(away)
    weights = session._weight(0, len(away))
    away = away.double().masked_fill(weights <= 0, -1.0)
    least = away.topk(min(fold.m, len(away))).values[-1]
    rows = (away >= least).nonzero()[:, 0]
    rows = rows[away[rows].sort(descending=True, stable=True).indices[: fold.m]]
    points, labels = session.gather(rows).double(), known[0].assigned[rows].long()
    return FarthestPoints(away[rows], rows, labels, points, weights[rows])


def _iterations(session: CudaSession, task: Iterations) -> Ran | None:
    known = session.steps(len(task.centers)) if session.exact else None
    if known is None:
        return None
    work, steps = known
    steps.begin(task.centers, task.tolerance)
    history: list[float] = []
    status, at_once, interrupted = GOING, steps.at_once, False
    while status == GOING and not interrupted and len(history) < task.max_iter:
        try:
            for _ in range(min(at_once, task.max_iter - len(history))):
                steps.step()
        except KeyboardInterrupt:
            interrupted = True
        status, record = work.so_far()
        history += [task.objective(change) for change in record[:, 0]]
        at_once = min(2 * at_once, RECORDS)
    session.changed = work.changed[0].clone() if status == EMPTY else None
    centers = work.centers.clone()
    return Ran(centers, history, status == SETTLED, status == EMPTY, interrupted)


def _seeds(session: CudaSession, task: Seeds) -> Tensor | None:
    if (
        session.kernels != CUDA_CPP
        or session.too_many_rows
        or not knows(session.points, task.draws)
    ):
        return None
    distances = session.state.column("distances")
    return seeds(session.points, task.first, task.draws, distances)


_FOLDS: dict[type, Callable[[CudaSession, Any], Any | None]] = {
    Moments: _moments, Nearest: _nearest, Measure: _measure, Cosines: _measure,
    Farthest: _farthest,
}  # fmt: skip
_TASKS: dict[type, Callable[[CudaSession, Any], Any | None]] = {
    Iterations: _iterations, Seeds: _seeds,
}  # fmt: skip
