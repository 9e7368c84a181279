"""Points that the kernels of a GPU have opened, and what they know of them between calls."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.extent import SAMPLE, typical_size
from lloydformer.data.layout import Layout
from lloydformer.engines.cuda.backend import CUDA_CPP, TORCH, TRITON, backend
from lloydformer.engines.cuda.hopper import hopper_steps
from lloydformer.engines.cuda.passes import WIDEST, moments
from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.steps import Steps
from lloydformer.engines.cuda.work import Work
from lloydformer.engines.state import PointState
from lloydformer.plans.assign import Moments
from lloydformer.plans.session import Fold

_MOST_ROWS = 1 << 30
"""Kernels count rows in 32 bits."""


@dataclass
class PointsOnGpu:
    """The points of a session, with its state of them.

    Attributes
    ----------
    blocks : TensorBlocks
        The points.
    state : PointState
        What is remembered of each point.
    fold_plainly : callable
        Runs a fold with torch.
    labelled : bool
        The last fold was one of kernels that label points, so the state has these labels.
    changed : Tensor or None
        Labels that have changed in an iteration that was broken off for an empty cluster.
    """

    blocks: TensorBlocks
    state: PointState
    fold_plainly: Callable[[Fold], Any]
    labelled: bool = False
    changed: Tensor | None = None
    _steps: dict[int, tuple[Work, Steps]] = field(default_factory=dict, init=False)
    _no_room: bool = field(default=False, init=False)
    _no_cpp: bool = field(default=False, init=False)

    @property
    def layout(self) -> Layout:
        return self.blocks.layout

    def forget(self) -> None:
        """No point has a label any more."""
        self.changed = None
        for work, _ in self._steps.values():
            work.forget()

    @property
    def kernels(self) -> str:
        """What kernels this GPU runs."""
        known = backend(self.layout.device)
        return TRITON if self._no_cpp and known == CUDA_CPP else known

    def without_cpp(self, why: Exception) -> None:
        """A kernel in CUDA C++ could not be compiled: use none of them any more."""
        warnings.warn(
            f"a kernel in CUDA C++ cannot be compiled ({str(why).splitlines()[0]}); slower kernels "
            "run instead",
            RuntimeWarning,
            stacklevel=2,
        )
        self._no_cpp = True
        self.forget_steps()

    def forget_steps(self) -> None:
        """Free the memory of the kernels; the next ones begin anew."""
        self._steps, self.labelled = {}, False

    @property
    def declined(self) -> bool:
        """Is it known that sums in fixed point are too coarse for these points?"""
        return "exact" in self.__dict__ and not self.exact

    @cached_property
    def points(self) -> Points:
        """The rows as kernels read them. Scaled rows and directions are computed once."""
        blocks = self.blocks
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
        blocks, known = self.blocks, self.blocks.survey
        if self.kernels != CUDA_CPP or blocks.n_features > WIDEST or self.too_many_rows:
            weighted, count, plain, sums = (moment.cpu() for moment in self.fold_plainly(Moments()))
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
        if self.blocks.survey is not None and self.points.rows is self.blocks.points:
            return self.blocks.survey.typical
        points = self.points
        rows = points.rows[:: max(1, points.n_rows // SAMPLE)][:SAMPLE] - points.origin
        sizes = np.zeros(SAMPLE)
        sizes[: len(rows)] = np.abs(rows.cpu().numpy()).mean(axis=1, dtype=np.float64)
        return typical_size(sizes.reshape(-1, 32).sum(axis=1), len(rows))

    @property
    def lands(self) -> bool:
        """Are the points the rows less the origin, so that kernels can round their centers?"""
        return not self.blocks.directions and self.blocks.scaling is None

    def steps(self, n_clusters: int) -> tuple[Work, Steps] | None:
        """Kernels for so many centers; None if there are none for these points."""
        known = self._steps.get(n_clusters)
        if known is None:
            return self._opened(n_clusters)
        if known[0].handed_over:
            known[0].forget()
        return known

    def _opened(self, n_clusters: int) -> tuple[Work, Steps] | None:
        """New kernels; those of the last number of centers are kept, as relocation needs both."""
        for other in list(self._steps)[:-1]:
            del self._steps[other]
        if self.kernels == TORCH or self.too_many_rows or self._no_room:
            return None
        try:
            return self._remembered(n_clusters)
        except torch.OutOfMemoryError:
            self._steps.clear()
        try:
            return self._remembered(n_clusters)
        except torch.OutOfMemoryError:
            self._warn_of_memory()
            return None

    def _remembered(self, n_clusters: int) -> tuple[Work, Steps] | None:
        work = Work.empty(self.points, n_clusters, self.blocks.directions)
        steps = self._steps_for(work)
        if steps is not None:
            self._steps[n_clusters] = work, steps
        return self._steps.get(n_clusters)

    def labelled_by(self, centers: Tensor) -> tuple[Work, Steps] | None:
        """Label the points by these centers, also in the state; None if no kernel can."""
        known = self.steps(len(centers))
        if known is not None:
            work, steps = known
            steps.begin(centers, 0.0)
            steps.assign()
            self.state.column("labels").copy_(work.assigned)
            self.labelled = True
        return known

    def _steps_for(self, work: Work) -> Steps | None:
        """CUDA C++ where it knows the problem, else Triton where that runs."""
        steps = hopper_steps(self.points, work) if self.kernels == CUDA_CPP else None
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
