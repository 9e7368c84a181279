"""The points of a session on a GPU, with what kernels know of them between calls."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from subprocess import CalledProcessError
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_statistics import SAMPLE, typical_size
from lloydformer.data.layout import Layout
from lloydformer.engines.cuda.backend import CUDA_CPP, TORCH, TRITON, choose_backend
from lloydformer.engines.cuda.hopper_lloyd import make_hopper_kernels
from lloydformer.engines.cuda.lloyd_state import LloydKernels, LloydState
from lloydformer.engines.cuda.points import DevicePoints
from lloydformer.engines.cuda.survey import MOST_COLUMNS, compute_moments
from lloydformer.engines.state import PointState
from lloydformer.fork_safety import cached_property
from lloydformer.plans.assign import Moments
from lloydformer.plans.session import Fold

# Kernels count rows in 32 bits, with room for the rows of a grid beyond the last one.
_MOST_ROWS = 1 << 30
# Features up to which kernels in CUDA C++ hold a row in the registers of a warp.
MOST_FEATURES = 256


@dataclass
class CudaPointArrays:
    """The points of a session, with the session's columns and the Lloyd kernels for them.

    Attributes
    ----------
    blocks : TensorBlocks
        The points.
    state : PointState
        The session's columns: one number per point each.
    fold_plainly : callable
        Runs a fold with torch.
    labels_current : bool
        The last fold labelled the points by kernels, so the columns have the kernels' labels.
    pending_changes : Tensor or None
        Labels that changed in an iteration that was broken off for an empty cluster. The host
        runs that iteration again, and must count them.
    """

    blocks: TensorBlocks
    state: PointState
    fold_plainly: Callable[[Fold], Any]
    labels_current: bool = False
    pending_changes: Tensor | None = None
    _lloyd: dict[int, LloydKernels] = field(default_factory=dict, init=False)
    _no_room: bool = field(default=False, init=False)
    _no_cpp: bool = field(default=False, init=False)
    _no_triton: bool = field(default=False, init=False)

    @property
    def layout(self) -> Layout:
        return self.blocks.layout

    @property
    def backend(self) -> str:
        """The kind of kernels that run: see `backend.py`."""
        known = choose_backend(self.layout.device)
        if self._no_cpp and known == CUDA_CPP:
            known = TRITON
        return TORCH if self._no_triton and known == TRITON else known

    @property
    def has_too_many_rows(self) -> bool:
        return self.layout.n_rows > _MOST_ROWS

    @property
    def has_cpp_folds(self) -> bool:
        """True if the folds in CUDA C++ run: Hopper, at most 256 features and 2^30 rows."""
        few = self.layout.n_features <= MOST_FEATURES and not self.has_too_many_rows
        return few and self.backend == CUDA_CPP

    @property
    def has_raw_units(self) -> bool:
        """True if rows are only shifted, so that kernels may round the final centers."""
        return not self.blocks.directions and self.blocks.scaling is None

    @cached_property
    def points(self) -> DevicePoints:
        """The rows as kernels read them. Scaled rows and directions are computed once."""
        blocks = self.blocks
        weights, heaviest = blocks.sample_weight, 1.0
        if weights is not None:
            weights, heaviest = weights.contiguous(), float(weights.max())
        if self.has_raw_units:
            rows, origin = blocks.points.contiguous(), blocks.origin.contiguous()
        else:
            rows = blocks.read_all()
            origin = torch.zeros_like(rows[0])
        return DevicePoints(rows, origin, weights, blocks.value_bound, heaviest)

    @cached_property
    def moments(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The summary of the fold `Moments`, on the CPU."""
        blocks, known = self.blocks, self.blocks.statistics
        fits = blocks.n_features <= MOST_COLUMNS and not self.has_too_many_rows
        if self.backend != CUDA_CPP or not fits:
            weighted, count, plain, sums = (moment.cpu() for moment in self.fold_plainly(Moments()))
            return weighted, count, plain, sums
        if known is None or blocks.sample_weight is not None or not self._rows_are_given:
            return compute_moments(self.points)
        # The pass that looked for NaN has added up the rows already.
        squares, sums = known.moments_about(blocks.origin_on_host)
        total = torch.tensor(squares, dtype=torch.float64)
        count = torch.tensor(float(blocks.n_rows), dtype=torch.float64)
        return total, count, total, torch.from_numpy(sums)

    @property
    def _rows_are_given(self) -> bool:
        """True if kernels read the user's rows, not a copy: then the survey describes them."""
        return self.points.rows is self.blocks.points

    @cached_property
    def sums_are_precise(self) -> bool:
        """True if there are kernels, and fixed-point sums are fine enough for these points."""
        if not self._can_run:
            return False
        try:
            _, count, plain, sums = (moment.numpy() for moment in self.moments)
            spread = float(plain / count - np.square(sums / count).sum()) / self.layout.n_features
            weights = self.points.weights
            lightest = 1.0 if weights is None else float(weights[weights > 0].min())
            typical = min(math.sqrt(max(spread, 0.0)), self._typical_size())
            return typical > 0 and self.points.can_resolve(typical, lightest)
        except torch.OutOfMemoryError:
            self._stop_for_memory()
            return False

    @property
    def known_imprecise(self) -> bool:
        """True if `sums_are_precise` has been computed and is False."""
        return "sums_are_precise" in self.__dict__ and not self.sums_are_precise

    def _typical_size(self) -> float:
        """Return the size of most coordinates, which a few outliers do not change.

        The standard deviation is not enough: one outlier among a million points raises it, and
        with it the unit that would pass as fine enough for the others.
        """
        if self.blocks.statistics is not None and self._rows_are_given:
            return self.blocks.statistics.typical
        points = self.points
        rows = points.rows[:: max(1, points.n_rows // SAMPLE)][:SAMPLE] - points.origin
        sizes = np.zeros(SAMPLE)
        sizes[: len(rows)] = np.abs(rows.cpu().numpy()).mean(axis=1, dtype=np.float64)
        return typical_size(sizes.reshape(-1, 32).sum(axis=1), len(rows))

    @property
    def _can_run(self) -> bool:
        return self.backend != TORCH and not self.has_too_many_rows and not self._no_room

    def lloyd_kernels(self, n_clusters: int) -> LloydKernels | None:
        """Return Lloyd kernels for this number of centers; None if these points have none."""
        known = self._lloyd.get(n_clusters)
        if known is not None:
            if known.state.labels_released:
                known.state.forget()
            return known
        # Keep those made last: relocation alternates between k and k + n_moved centers.
        for other in list(self._lloyd)[:-1]:
            del self._lloyd[other]
        if not self._can_run:
            return None
        for _ in range(2):
            try:
                return self._make_lloyd_kernels(n_clusters)
            except torch.OutOfMemoryError:
                self._lloyd.clear()  # the float16 copy for the other number of centers: try again
        self._stop_for_memory()
        return None

    def _make_lloyd_kernels(self, n_clusters: int) -> LloydKernels | None:
        """Make and keep kernels in CUDA C++ if they know the problem, else in Triton."""
        state = LloydState(self.points, n_clusters, self.blocks.directions)
        kernels = make_hopper_kernels(self.points, state) if self.backend == CUDA_CPP else None
        if kernels is None and not self._no_triton:
            try:
                # Here, because Triton is an optional dependency.
                from lloydformer.engines.cuda.portable.lloyd import PortableLloyd

                kernels = PortableLloyd(self.points, state)
            except torch.OutOfMemoryError:
                raise
            # Triton also needs a C compiler and the headers of Python.
            except (ImportError, OSError, RuntimeError, CalledProcessError) as error:
                self._disable_triton(error)
        if kernels is not None:
            self._lloyd[n_clusters] = kernels
        return kernels

    def assign_labels(self, centers: Tensor) -> LloydKernels | None:
        """Label the points by these centers, in the session's column too; None if no kernel can."""
        kernels = self.lloyd_kernels(len(centers))
        if kernels is not None:
            kernels.begin(centers, 0.0)
            kernels.assign()
            self.state.column("labels").copy_(kernels.state.assigned)
            self.labels_current = True
        return kernels

    def forget(self) -> None:
        """Set all points to unassigned."""
        self.pending_changes = None
        for kernels in self._lloyd.values():
            kernels.state.forget()

    def release_kernels(self) -> None:
        """Free the memory of the Lloyd kernels; the next call makes new ones."""
        self._lloyd, self.labels_current = {}, False

    def disable_cpp(self, why: Exception) -> None:
        """Use no kernels in CUDA C++ any more: one of them could not be compiled."""
        warnings.warn(
            f"a kernel in CUDA C++ cannot be compiled ({str(why).splitlines()[0]}); slower kernels "
            "run instead",
            RuntimeWarning,
            stacklevel=2,
        )
        self._no_cpp = True
        self.release_kernels()

    def _disable_triton(self, why: Exception) -> None:
        """Use no kernels in Triton any more: they could not be imported or compiled."""
        self._no_triton = True
        if isinstance(why, ModuleNotFoundError):  # not installed: `lloydformer doctor` says so
            return
        first_line = str(why).partition("\n")[0]
        warnings.warn(
            f"kernels in Triton cannot run ({first_line}); PyTorch runs instead, more slowly",
            RuntimeWarning,
            stacklevel=2,
        )

    def _stop_for_memory(self) -> None:
        """Use no kernels from now on, and warn: their copy of the points does not fit."""
        self._no_room = True
        free, total = (size / 2**30 for size in torch.cuda.mem_get_info(self.layout.device))
        warnings.warn(
            "X: the copy of the points that kernels read does not fit into the memory of the GPU "
            f"({free:.1f} of {total:.1f} GiB are free); PyTorch runs without it, more slowly. "
            "Free memory or pass fewer rows",
            RuntimeWarning,
            stacklevel=2,
        )
