"""Lloyd's algorithm on many small problems, iteration by iteration, in one launch."""

import ctypes
from typing import NamedTuple

import torch
from torch import Tensor

from lloydformer.engines.cuda.batch import BatchArgument, launch
from lloydformer.engines.cuda.launches import make_ready
from lloydformer.numerics.checks import allowed_spans


class PathsArgument(ctypes.Structure):
    """`struct Paths` of kernels/batch.cu."""

    _fields_ = [
        ("batch", BatchArgument), ("drawn", ctypes.c_void_p), ("path", ctypes.c_void_p),
        ("sets", ctypes.c_int),
    ]  # fmt: skip


class Paths(NamedTuple):
    """Centers (s, b, k, d) after each of s iterations, and how many were done, (b,).

    A problem whose values cannot be used has centers NaN and a negative number.
    """

    centers: Tensor
    n_iter: Tensor


def lloyd_paths(x: Tensor, starts: Tensor, drawn: Tensor) -> Paths:
    """Do s iterations from starts (b, k, d), one block each.

    Precondition: `batch.fits(x, k)`. Nothing waits for the GPU.

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
        make_ready(x.device)
        found = empty_paths(starts, len(drawn))
        launch("lloyd_paths", x, starts, paths_argument(x, starts, found, drawn))
    return found


def empty_paths(starts: Tensor, n_steps: int) -> Paths:
    """Memory for paths from starts (b, k, d)."""
    centers = torch.full(
        (n_steps, *starts.shape), torch.nan, dtype=torch.float32, device=starts.device
    )
    return Paths(centers, torch.empty(len(starts), dtype=torch.int64, device=starts.device))


def paths_argument(x: Tensor, starts: Tensor, found: Paths, drawn: Tensor) -> PathsArgument:
    """What the kernel is launched with. Precondition: all tensors are contiguous."""
    m, n, d = x.shape
    batch = BatchArgument(
        rows=x.data_ptr(), starts=starts.data_ptr(), n_iter=found.n_iter.data_ptr(), n=n, d=d,
        max_iter=len(found.centers), starts_are_single=int(starts.dtype == torch.float32),
    )  # fmt: skip
    batch.least, batch.most = allowed_spans(x.dtype, d, n)
    return PathsArgument(batch, drawn.data_ptr(), found.centers.data_ptr(), m)
