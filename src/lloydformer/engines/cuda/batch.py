"""Many small problems of Lloyd's algorithm in one launch, by the CUDA C++ kernel for Hopper."""

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from lloydformer.engines.cuda.backend import CUDA_CPP, backend
from lloydformer.engines.cuda.launches import SHARED, Arguments, Grid, Launch, make_ready
from lloydformer.engines.cuda.nvrtc import Constants
from lloydformer.engines.cuda.points import is_vector

_MOST_CENTERS, _MOST_FEATURES, _THREADS = 16, 64, 256
_STATIC, _RESERVED, _MOST_BLOCKS = 128, 1024, 3
"""Bytes of shared memory beside the dynamic ones; blocks of a multiprocessor, for registers."""
_LONGEST = 2**31 - 1


class BatchArgument(ctypes.Structure):
    """`struct Batch` of kernels/batch.cu."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in (
            "rows", "starts", "centers", "labels", "inertia", "n_iter",
        )),
        ("tol", ctypes.c_double), ("least", ctypes.c_float), ("most", ctypes.c_float),
        *((name, ctypes.c_int) for name in ("n", "d", "max_iter", "starts_are_single")),
    ]  # fmt: skip


class Solved(NamedTuple):
    """Centers (b, k, d) and inertia (b,) in float64, labels (b, n) in int32, n_iter (b,)."""

    centers: Tensor
    labels: Tensor
    inertia: Tensor
    n_iter: Tensor


def fits(x: Tensor, n_clusters: int) -> bool:
    """Is there a kernel for problems x (b, n, d) on a GPU?"""
    _, n, d = x.shape
    return (
        x.dtype == torch.float32
        and n_clusters <= _MOST_CENTERS
        and d <= _MOST_FEATURES
        and shared_bytes(n, width_for(d), n_clusters) <= SHARED - _STATIC
        and backend(x.device) == CUDA_CPP
    )


def solve_batch(
    x: Tensor, starts: Tensor, tol: float, max_iter: int, spans: tuple[float, float]
) -> Solved | None:
    """Solve problems x (b, n, d) from starts (b, k, d), one block each.

    Precondition: `fits(x, k)`, and k is at most n. The only synchronisation is at the end.

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
    Solved or None
        None if values are not finite or out of range, in points or starts.
    """
    (b, n, d), k, device = x.shape, starts.shape[1], x.device
    x, starts = x.contiguous(), starts.contiguous()
    with torch.cuda.device(device):
        make_ready(device)
        solved = empty_results(b, n, k, d, device)
        launch("solve_batch", x, starts, argument(x, starts, solved, tol, max_iter, spans))
    return None if declined(solved.n_iter) else solved


def launch(name: str, x: Tensor, starts: Tensor, given: ctypes.Structure) -> None:
    """Put a kernel of batch.cu on the stream, a block for each start (b, k, d)."""
    (b, k, _), (_, n, d) = starts.shape, x.shape
    shared = shared_bytes(n, width_for(d), k)
    blocks = min(_MOST_BLOCKS, (SHARED + _RESERVED) // (shared + _STATIC + _RESERVED))
    constants = (*macros_for(x, k), ("BLOCKS", blocks))
    grid = Grid(b, _THREADS, shared)
    Launch("batch.cu", name, x.device, grid, Arguments(given), constants)()


def declined(n_iter: Tensor) -> bool:
    """Were the values of a problem refused? Waits for the kernel."""
    return int(n_iter.cpu().numpy().min()) < 0


def macros_for(x: Tensor, n_clusters: int) -> Constants:
    """What the kernel is compiled for. Precondition: x is contiguous."""
    return ("D", width_for(x.shape[2])), ("K", n_clusters), ("VECTOR", int(is_vector(x[0])))


def empty_results(b: int, n: int, k: int, d: int, device: torch.device) -> Solved:
    """Memory for the results of b problems."""
    return Solved(
        torch.empty(b, k, d, dtype=torch.float64, device=device),
        torch.empty(b, n, dtype=torch.int32, device=device),
        torch.empty(b, dtype=torch.float64, device=device),
        torch.empty(b, dtype=torch.int64, device=device),
    )


def argument(
    x: Tensor, starts: Tensor, solved: Solved, tol: float, max_iter: int, spans: tuple[float, float]
) -> BatchArgument:
    """What the kernel is launched with. Precondition: x and starts are contiguous."""
    _, n, d = x.shape
    return BatchArgument(
        x.data_ptr(), starts.data_ptr(), *(tensor.data_ptr() for tensor in solved), tol, *spans,
        n, d, min(max_iter, _LONGEST), int(starts.dtype == torch.float32),
    )  # fmt: skip


def width_for(d: int) -> int:
    """Columns that the kernel is compiled for."""
    return max(8, 1 << (d - 1).bit_length())


def shared_bytes(n: int, width: int, n_clusters: int) -> int:
    """Bytes of `struct Problem` and of the arrays behind it."""
    padded = -(-n // 32) * 32
    fixed = 20 * n_clusters * width + 12 * width + 512
    return fixed + 4 * width * (padded + 16) + padded
