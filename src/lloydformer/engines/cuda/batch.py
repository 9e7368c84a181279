"""Many small problems of Lloyd's algorithm in one launch, by the CUDA C++ kernel for Hopper.

A block of threads solves one problem in shared memory, from its start to its end (`solve_batch`),
or returns the centers after each of a number of iterations (`run_lloyd_paths`).
"""

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP, choose_backend
from lloydformer.engines.cuda.launch import SHARED_LIMIT, Grid, Launch, ensure_context
from lloydformer.engines.cuda.nvrtc import Macros
from lloydformer.engines.cuda.points import can_load_vectors, list_fields
from lloydformer.numerics.checks import allowed_spans

# Labels are bytes, and sums are products of tensor cores with 16 rows: one for each center.
# With 64 columns each of the 8 warps sums one tile of 8.
_MOST_CENTERS, _MOST_FEATURES, _N_THREADS = 16, 64, 256
# Bytes of shared memory of a block besides the dynamic ones: static arrays, reserved by CUDA.
_STATIC, _RESERVED = 128, 1024
# Blocks per multiprocessor, at most: three leave 80 registers to each of 768 threads.
_MOST_BLOCKS = 3
_LARGEST_INT = 2**31 - 1


class BatchArgument(ctypes.Structure):
    """`struct Batch` of kernels/batch.cu."""

    _fields_ = list_fields(
        "pointer rows starts centers labels inertia n_iter",
        "double tol",
        "float least most",
        "int n d max_iter starts_are_single",
    )


class PathsArgument(ctypes.Structure):
    """`struct Paths` of kernels/batch.cu."""

    _fields_ = [("batch", BatchArgument), *list_fields("pointer drawn path", "int sets")]


class BatchSolution(NamedTuple):
    """Centers (b, k, d) and inertia (b,) in float64, labels (b, n) in int32, n_iter (b,)."""

    centers: Tensor
    labels: Tensor
    inertia: Tensor
    n_iter: Tensor


class LloydPaths(NamedTuple):
    """Centers (s, b, k, d) after each of s iterations, and how many were done, (b,).

    A problem whose values cannot be used has centers NaN and a negative number.
    """

    centers: Tensor
    n_iter: Tensor


def has_batch_kernel(x: Tensor, n_clusters: int) -> bool:
    """Return True if there is a kernel for problems x (b, n, d) on a GPU."""
    _, n, d = x.shape
    return (
        x.dtype == torch.float32
        and n_clusters <= _MOST_CENTERS
        and d <= _MOST_FEATURES
        and count_shared_bytes(n, pad_width(d), n_clusters) <= SHARED_LIMIT - _STATIC
        and choose_backend(x.device) == CUDA_CPP
    )


def solve_batch(
    x: Tensor, starts: Tensor, tol: float, max_iter: int, spans: tuple[float, float]
) -> BatchSolution | None:
    """Solve problems x (b, n, d) from starts (b, k, d), one block each.

    Precondition: `has_batch_kernel(x, k)`, and k is at most n. The only synchronisation is at the
    end.

    Parameters
    ----------
    x, starts : Tensor
        On the same GPU; starts in float32 or float64.
    tol, max_iter
        As in `solving.rules.Rules`.
    spans : tuple of float
        Limits of half the range of the columns of a problem, as in `numerics.checks.check_range`.

    Returns
    -------
    BatchSolution or None
        None if values are not finite or out of range, in points or starts.
    """
    x, starts = x.contiguous(), starts.contiguous()
    with torch.cuda.device(x.device):
        ensure_context(x.device)
        solution = allocate_solution(x, starts)
        argument = make_batch_argument(x, starts, solution, tol, max_iter, spans)
        _launch("solve_batch", x, starts, argument)
    return None if has_bad_values(solution.n_iter) else solution


def run_lloyd_paths(x: Tensor, starts: Tensor, drawn: Tensor) -> LloydPaths:
    """Do s iterations from starts (b, k, d), one block each.

    Precondition: `has_batch_kernel(x, k)`. The host does not wait for the GPU.

    Parameters
    ----------
    x : Tensor of shape (m, n, d)
        The points; m divides b, and problem i has the points i modulo m.
    starts : Tensor of shape (b, k, d)
        On the same GPU, in float32 or float64.
    drawn : Tensor of shape (s, b, k)
        In int64: the row of the point that a cluster takes if it is empty.
    """
    x, starts, drawn = x.contiguous(), starts.contiguous(), drawn.contiguous()
    with torch.cuda.device(x.device):
        ensure_context(x.device)
        paths = allocate_paths(starts, len(drawn))
        _launch("lloyd_paths", x, starts, make_paths_argument(x, starts, paths, drawn))
    return paths


def _launch(name: str, x: Tensor, starts: Tensor, argument: ctypes.Structure) -> None:
    """Enqueue a kernel of batch.cu, a block for each start (b, k, d)."""
    (b, k, _), (_, n, d) = starts.shape, x.shape
    shared = count_shared_bytes(n, pad_width(d), k)
    of_processor, of_block = SHARED_LIMIT + _RESERVED, shared + _STATIC + _RESERVED
    blocks = min(_MOST_BLOCKS, of_processor // of_block)
    macros = (*list_batch_macros(x, k), ("BLOCKS", blocks))
    Launch("batch.cu", name, x.device, Grid(b, _N_THREADS, shared), argument, macros=macros)()


def has_bad_values(n_iter: Tensor) -> bool:
    """Return True if the kernel refused the values of a problem. Waits for the kernel."""
    return int(n_iter.cpu().numpy().min()) < 0


def list_batch_macros(x: Tensor, n_clusters: int) -> Macros:
    """Return the macros that the kernel is compiled with. Precondition: x is contiguous."""
    width, vector = pad_width(x.shape[2]), int(can_load_vectors(x[0]))
    return ("D", width), ("K", n_clusters), ("VECTOR", vector)


def allocate_solution(x: Tensor, starts: Tensor) -> BatchSolution:
    """Return memory for the solutions of problems x (b, n, d) from starts (b, k, d)."""
    (b, n, _), device = x.shape, x.device
    return BatchSolution(
        torch.empty(starts.shape, dtype=torch.float64, device=device),
        torch.empty(b, n, dtype=torch.int32, device=device),
        torch.empty(b, dtype=torch.float64, device=device),
        torch.empty(b, dtype=torch.int64, device=device),
    )


def allocate_paths(starts: Tensor, n_steps: int) -> LloydPaths:
    """Return memory for paths from starts (b, k, d)."""
    shape, device = (n_steps, *starts.shape), starts.device
    centers = torch.full(shape, torch.nan, dtype=torch.float32, device=device)
    return LloydPaths(centers, torch.empty(len(starts), dtype=torch.int64, device=device))


def make_batch_argument(
    x: Tensor,
    starts: Tensor,
    solution: BatchSolution,
    tol: float,
    max_iter: int,
    spans: tuple[float, float],
) -> BatchArgument:
    """Return the argument of `solve_batch`. Precondition: x and starts are contiguous."""
    (_, n, d), single = x.shape, int(starts.dtype == torch.float32)
    pointers = (tensor.data_ptr() for tensor in (x, starts, *solution))
    return BatchArgument(*pointers, tol, *spans, n, d, min(max_iter, _LARGEST_INT), single)


def make_paths_argument(
    x: Tensor, starts: Tensor, paths: LloydPaths, drawn: Tensor
) -> PathsArgument:
    """Return the argument of `lloyd_paths`. Precondition: all tensors are contiguous."""
    m, n, d = x.shape
    batch = BatchArgument(rows=x.data_ptr(), starts=starts.data_ptr(), n=n, d=d)
    batch.n_iter, batch.max_iter = paths.n_iter.data_ptr(), len(paths.centers)
    batch.starts_are_single = int(starts.dtype == torch.float32)
    batch.least, batch.most = allowed_spans(x.dtype, d, n)
    return PathsArgument(batch, drawn.data_ptr(), paths.centers.data_ptr(), m)


def pad_width(d: int) -> int:
    """Return the columns that the kernel is compiled for: 8, 16, 32 or 64."""
    return max(8, 1 << (d - 1).bit_length())


def count_shared_bytes(n: int, width: int, n_clusters: int) -> int:
    """Return the bytes of `struct Problem` in batch.cu and of the arrays behind it."""
    padded = -(-n // 32) * 32
    problem = 20 * n_clusters * width + 12 * width + 512
    points, labels = 4 * width * (padded + 16), padded
    return problem + points + labels
