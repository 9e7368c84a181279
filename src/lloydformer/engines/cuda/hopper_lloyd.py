"""Lloyd's iterations by the CUDA C++ kernels for Hopper: three families, by problem size.

- `TinyLloyd`: up to 4 features and few centers; one launch per iteration that reads the rows.
- `SmallLloyd`: up to 16 centers and 64 features; one launch that reads a float16 copy.
- `LargeLloyd`: up to 4,096 centers and 256 features; scores by wgmma, several launches.

Launches are prepared when they are first used: a kernel takes up to seconds to compile, and most
fits need some of them only.
"""

import ctypes
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.launch import (
    SHARED_LIMIT,
    Grid,
    Launch,
    choose_row_tile,
    count_processors,
)
from lloydformer.engines.cuda.lloyd_state import LloydKernels, LloydState
from lloydformer.engines.cuda.points import DevicePoints, list_fields
from lloydformer.fork_safety import cached_property

# tiny.cu keeps k d sums in float64 in registers: 24 of them take 48 of the 128 registers that a
# thread may have with two blocks of 256 threads.
_TINY_FEATURES, _TINY_NUMBERS = 4, 24
# One tensor core instruction (m16n8k16) has 8 columns: small.cu keeps all centers in two of them.
_SMALL_CENTERS, _SMALL_FEATURES = 16, 64
# assign.cu holds a share of the rows in registers: 64 of them with 256 features. 4,096 centers
# were chosen by hand; a label word would have bits for 32,768.
_LARGE_FEATURES, _LARGE_CENTERS = 256, 4096
# Most centers of a part with 256 features; narrower rows leave room for more. So `LargeLloyd` never
# has more than ceil(k / 384) parts.
_PART_AT_FULL_WIDTH = 384

# If the largest coordinate is between 2^-40 and 2^40, its square is far inside of float32's range
# (2^+-126), and kernels compute in float32 without scaling. Smaller ones may underflow.
_SAFE_REACH = 2.0**40
# Blocks per multiprocessor that measure distances: 8 x 256 threads are all that it has room for.
_MEASURE_BLOCKS = 8
# Empty clusters that are filled on the device, at most: `struct EmptyClusters` of loop_control.cu.
# Chosen by hand: they travel as a kernel argument. The host fills clusters if there are more.
_MOST_FILLED = 16
# Iterations at the beginning that add up all points; later ones move only points that change.
# Chosen by hand: in the first iteration every label is new.
_FULL_SUMS = 2
# Bytes of shared memory for rows that are compared with all centers: four blocks of 56 KiB fit
# into the 228 KiB of a multiprocessor.
_RECHECK_SHARED = 56 * 1024


class EmptyClusters(ctypes.Structure):
    """`struct EmptyClusters` of kernels/loop_control.cu."""

    _fields_ = [("clusters", ctypes.c_int * _MOST_FILLED), ("count", ctypes.c_int)]


class LargeArgument(ctypes.Structure):
    """`struct Large` of kernels/prelude.cuh."""

    _fields_ = list_fields(
        "pointer copy norms log_norms tiles lifted shift center_sizes partial queued word best",
        "pointer list counts starts",
        "int padded part parts each",
    )


def make_hopper_kernels(points: DevicePoints, state: LloydState) -> LloydKernels | None:
    """Return the family of kernels for this problem; None if there is none."""
    d, k = points.n_features, state.n_clusters
    plain = points.rows.dtype == torch.float32 and points.weights is None and _in_range(points)
    # tiny.cu reads rows of 2 and 4 numbers as vectors.
    aligned = d not in (2, 4) or points.rows.data_ptr() % (4 * d) == 0
    if d <= _TINY_FEATURES and k * d <= _TINY_NUMBERS and plain and aligned:
        return TinyLloyd(points, state)
    if k <= _SMALL_CENTERS and d <= _SMALL_FEATURES:
        return SmallLloyd(points, state)
    if d <= _LARGE_FEATURES and k <= _LARGE_CENTERS:
        return LargeLloyd(points, state)
    return None


def bound_copy_bytes(d: int, k: int) -> int:
    """Return an upper bound of the bytes per point of the float16 copy and the label words."""
    if k <= _SMALL_CENTERS and d <= _SMALL_FEATURES:
        return 2 * (32 if d <= 32 else 64)
    return 2 * (-(-d // 64) * 64) + 8 * -(-k // _PART_AT_FULL_WIDTH)


def _in_range(points: DevicePoints) -> bool:
    """Return True if the square of the largest coordinate neither overflows nor underflows."""
    return 1 / _SAFE_REACH < points.reach < _SAFE_REACH


class HopperLloyd:
    """Base of the families: the start, the final assignment, distances, empty clusters."""

    # Chosen by hand: an iteration after the stop costs its launch alone.
    first_batch = 32
    # Iterations store labels: `sums` stay those of `assigned` between calls, and `fill_empty` can
    # end an iteration that left clusters empty.
    keeps_labels = True

    def __init__(self, points: DevicePoints, state: LloydState) -> None:
        self.points, self.state = points, state
        self.device = points.rows.device
        self.processors = count_processors(self.device)
        # Packed arguments refer to this object, so that a new `assigned` reaches all launches.
        self._state_argument = state.make_argument()
        self._last = ctypes.c_int()
        self._final: tuple[Launch, Launch] | None = None

    def _empty(self, *shape: int, dtype: torch.dtype) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _prepare(
        self, file: str, name: str, grid: Grid, *arguments: Any, **macros: object
    ) -> Launch:
        """Prepare a kernel that takes `struct Points`, `struct LloydState` and these arguments."""
        given = self.points.argument, self._state_argument, *arguments
        all_macros = (*self.points.macros, *macros.items())
        return Launch(file, name, self.device, grid, *given, macros=all_macros)

    def begin(self, centers: Tensor, tolerance: float) -> None:
        centers = centers.double().contiguous()
        blocks = min(-(-centers.numel() // 256), self.processors)
        self.state.restart_reports()
        self._state_argument.assigned = self.state.assigned.data_ptr()
        given = centers, tolerance, int(not self.keeps_labels)
        self._prepare("loop_control.cu", "begin", Grid(blocks, 256), *given)()
        self._copy_centers()

    def _copy_centers(self) -> None:
        """Copy `LloydState.rounded` to float16 if needed: it changed outside of an iteration."""

    def assign(self) -> None:
        self._assign()

    @cached_property
    def _assign(self) -> Launch:
        return self._prepare_iteration(only_assign=1)

    def _prepare_iteration(self, only_assign: int) -> Launch:
        """Prepare an iteration of one launch; with `only_assign` the centers stay."""
        raise NotImplementedError

    def assign_final(self, *, last: bool) -> None:
        if self._final is None:
            blocks = min(-(-self.state.n_clusters * self.state.n_features // 256), self.processors)
            begin = self._prepare("loop_control.cu", "begin_final", Grid(blocks, 256), self._last)
            self._final = begin, self._prepare_measure(ctypes.c_void_p(), final=1)
        begin, measure = self._final
        self._last.value = last
        begin()
        self._copy_centers()
        self.assign()
        measure()

    def measure(self, distances: Tensor) -> Tensor:
        self._prepare_measure(distances, final=0)()
        return self.state.total

    def _prepare_measure(self, distances: Any, final: int) -> Launch:
        row, lanes = choose_row_tile(self.points.n_features)
        grid, given = Grid(len(self._partial), 256), (distances, self._partial, final)
        return self._prepare("measure.cu", "measure", grid, *given, ROW=row, LANES=lanes)

    @cached_property
    def _partial(self) -> Tensor:
        """Two numbers for each block of `measure` and of `take_farthest`."""
        return self._empty(_MEASURE_BLOCKS * self.processors, 2, dtype=torch.float64)

    def fill_empty(self, masses: np.ndarray, distances: Tensor) -> bool:
        empty = np.flatnonzero(masses == 0)
        if not self.keeps_labels or len(empty) > _MOST_FILLED or self.state.directions:
            return False
        self._prepare_measure(distances, final=0)()
        taken = self._empty(_MOST_FILLED, dtype=torch.int32)
        grid = Grid(2 * self.processors, 256)
        for i in range(len(empty)):
            given = distances, self._partial, taken[i:]
            self._prepare("loop_control.cu", "take_farthest", grid, *given)()
        clusters = EmptyClusters((ctypes.c_int * _MOST_FILLED)(*empty.tolist()), len(empty))
        self._prepare("loop_control.cu", "fill_empty", Grid(1, 1024), taken, clusters)()
        self._copy_centers()
        return True

    def _copy_points(self, width: int, *, tile: int, fragments: bool) -> None:
        """Make the float16 copy of the points with so many columns, padded to whole tiles of rows.

        With `fragments` the copy is in the order of wgmma's operand A.
        """
        self.width, self.padded = width, -(-self.points.n_rows // tile) * tile
        self.copy = self._empty(self.padded, width, dtype=torch.float16)
        self.norms = self._empty(self.padded, 2, dtype=torch.float32)
        in_float32 = self.points.rows.dtype == torch.float32 and _in_range(self.points)
        macros = self.points.macros if in_float32 else (*self.points.macros, ("SCALED_DOUBLE", 1))
        written = self.copy, self.norms, self.state.log_norms
        given = self.points.argument, *written, self.padded, width, int(fragments)
        grid = Grid(8 * self.processors, 256)
        Launch("prepare.cu", "prepare", self.device, grid, *given, macros=macros)()


class TinyLloyd(HopperLloyd):
    """Few features, few centers: an iteration reads the rows and nothing else.

    |c|^2 must not overflow float32; `_check_range` of initial_centers.py ensures it.
    """

    keeps_labels = False  # every iteration adds up all points

    def __init__(self, points: DevicePoints, state: LloydState) -> None:
        super().__init__(points, state)
        self.step = self._prepare_iteration(only_assign=0)

    def _prepare_iteration(self, only_assign: int) -> Launch:
        d, grid = self.points.n_features, Grid(2 * self.processors, 256)
        # |x| <= reach sqrt(d); 1.0001 covers the rounding to float32.
        farthest = ctypes.c_float(self.points.reach * d**0.5 * 1.0001)
        macros = {"DIM": d, "K": self.state.n_clusters, "LABELS": only_assign}
        return self._prepare("tiny.cu", "iterate_tiny", grid, farthest, **macros)


class SmallLloyd(HopperLloyd):
    """Few centers: one launch per iteration, which reads the float16 copy of the points."""

    def __init__(self, points: DevicePoints, state: LloydState) -> None:
        super().__init__(points, state)
        self._copy_points(32 if points.n_features <= 32 else 64, tile=16, fragments=False)
        self.step = self._prepare_iteration(only_assign=0)

    def _prepare_iteration(self, only_assign: int) -> Launch:
        wide, k, warps = self.width, 8 if self.state.n_clusters <= 8 else 16, 8
        # `struct Shared` of small.cu: sums and masses of each warp, centers, two bounds of each,
        # scratch of a block sum, queues of 48 rows; 64 bytes for alignment.
        of_warp = k * (wide + 1) * 8 + 48 * 4
        shared = warps * of_warp + k * wide * self.points.rows.dtype.itemsize + 8 * k + 256 + 64
        # Blocks per multiprocessor, chosen by hand: the compiler gives a thread as many registers
        # as so many blocks allow, 80 or 255.
        blocks = 3 if wide == 32 else 1
        grid = Grid(blocks * self.processors, 32 * warps, shared)
        given = self.copy, self.norms, only_assign
        return self._prepare("small.cu", "iterate_small", grid, *given, D=wide, K=k, BLOCKS=blocks)


class LargeLloyd(HopperLloyd):
    """Many centers: scores by wgmma, then close calls, sums and new centers."""

    first_batch = 20  # chosen by hand; an iteration is four to eight launches, not one
    _full_sums_left = 0

    def __init__(self, points: DevicePoints, state: LloydState) -> None:
        super().__init__(points, state)
        n, k = points.n_rows, state.n_clusters
        self._copy_points(-(-points.n_features // 64) * 64, tile=64, fragments=True)
        # Columns of a matrix instruction, centers of a part in shared memory, and parts. A part
        # has at most 32 x 32 centers: assign.cu finds one by two codes of five bits.
        self.columns = self.part = -(-k // 8) * 8
        self.parts = 1
        if k > 128:
            most = min(1024, (SHARED_LIMIT - 2048) // (2 * self.width + 8) // 128 * 128)
            self.columns, self.part = 128, -(-k // (128 * -(-k // most))) * 128
            self.parts = -(-k // self.part)
        blocks, padded_k = 2 * self.processors, self.part * self.parts
        whole, single = torch.int32, torch.float32
        self._counters = torch.zeros(2 + k, dtype=whole, device=self.device)
        self._tensors = {
            "copy": self.copy,
            "norms": self.norms,
            "log_norms": state.log_norms,
            "tiles": self._empty(padded_k, self.width, dtype=torch.float16),
            "lifted": self._empty(padded_k, dtype=single),
            "shift": self._empty(1, dtype=single),
            "center_sizes": self._empty(padded_k, 2, dtype=single),
            "partial": self._empty(padded_k, 2, dtype=torch.float64),
            "queued": self._counters,
            "word": self._empty(self.parts, self.padded, dtype=whole),
            "best": self._empty(self.parts if self.parts > 1 else 0, self.padded, dtype=single),
            "list": self._empty(n, dtype=whole),
            "counts": self._empty(blocks, k, dtype=whole),
            "starts": self._counters[2:],
        }
        pointers = {name: tensor.data_ptr() for name, tensor in self._tensors.items()}
        sizes = {"padded": self.padded, "part": self.part, "parts": self.parts}
        self._argument = LargeArgument(**pointers, **sizes, each=-(-n // blocks))
        # Rows that a block compares with all centers at once: as many as the memory allows.
        compared = (self.width + k) * points.rows.dtype.itemsize
        fits = (count for count in (16, 8, 4, 2, 1) if count * compared <= _RECHECK_SHARED)
        self._together = next(fits)
        counting, every = Grid(blocks, 1024, 4 * k), Grid(8 * self.processors, 256)
        self._grids = {
            "merge": every,
            "recheck": Grid(4 * self.processors, 256, self._together * compared),
            "move": every,
            "count_labels": counting,
            "scan_counts": Grid(1, 1024),
            "sort_rows": counting,
            "add_runs": Grid(-(-n // 512), 256),  # 64 rows for each of the 8 warps of a block
            "update": Grid(padded_k, self.width),  # a block per center, a thread per feature
        }
        self._launches: dict[tuple[str, tuple[int, ...]], Launch] = {}

    @cached_property
    def _score(self) -> Launch:
        # Warpgroups of a block. A thread holds width / 4 registers of rows and up to 64 of scores:
        # four, three or two groups of 128 threads leave it 128, 168 or 255 registers.
        groups = {64: 4, 128: 3}.get(self.width, 2)
        processors = self.processors // self.parts * self.parts  # each part gets as many blocks
        grid = Grid(processors, 128 * groups, self.part * (2 * self.width + 8) + 1024)
        macros = {"D": self.width, "N": self.columns, "GROUPS": groups}
        macros |= {"TILES": self.part // self.columns}
        return self._prepare("assign.cu", "assign", grid, self._argument, **macros)

    def _run(self, name: str, *arguments: int) -> None:
        """Enqueue a kernel of update.cu."""
        launch = self._launches.get((name, arguments))
        if launch is None:
            macros = {"D": self.width, "TOGETHER": self._together}
            given = self._argument, *arguments
            launch = self._prepare("update.cu", name, self._grids[name], *given, **macros)
            self._launches[name, arguments] = launch
        launch()

    def _copy_centers(self) -> None:
        self._run("update", 1)

    def begin(self, centers: Tensor, tolerance: float) -> None:
        super().begin(centers, tolerance)
        self._full_sums_left = _FULL_SUMS

    def _label(self) -> None:
        self._score()
        if self.parts > 1:
            self._run("merge")
        self._run("recheck")

    def assign(self) -> None:
        self._label()
        self._run("move")

    def step(self) -> None:
        self._label()
        if self._full_sums_left > 0:
            self._full_sums_left -= 1
            for name in ("count_labels", "scan_counts", "sort_rows", "add_runs"):
                self._run(name)
        else:
            self._run("move")
        self._run("update", 0)
