"""Greedy k-means++ on the device, for several starts at once, without waiting for the host."""

import ctypes
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from lloydformer.engines.cuda.launches import (
    Arguments,
    Grid,
    Launch,
    PointsArgument,
    macros,
    n_processors,
    points_argument,
    row_shape,
)
from lloydformer.engines.cuda.points import Points

_CHUNK, _MOST_TRIALS, _WIDEST = 1024, 16, 256
_MOST_STARTS, _MOST_CANDIDATES, _MOST_SHARED = 16, 64, 96 * 1024
"""Starts that share a read of the points, their candidates, and the shared memory of these."""


class _Seeds(ctypes.Structure):
    """`struct Seeds` of kernels/seeds.cu."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in (
            "distances", "rows", "found", "masses", "fractions", "candidates", "partial", "ticket",
        )),
        ("k", ctypes.c_int), ("chunks", ctypes.c_int),
    ]  # fmt: skip


def knows(points: Points, n_trials: int) -> bool:
    """Are there kernels for such points and so many candidates a seed?"""
    return points.n_features <= _WIDEST and n_trials <= _MOST_TRIALS


def seeds(points: Points, firsts: np.ndarray, draws: np.ndarray) -> list[Tensor]:
    """For each start the rows (k,) of the seeds; fewer, if every point with weight is one.

    Parameters
    ----------
    points : Points
        The points.
    firsts : ndarray of shape (s,)
        The row of the first seed of each start.
    draws : ndarray of shape (s, k - 1, trials)
        Numbers from [0, 1).
    """
    parts = list(_together(points, *draws.shape[::2]))
    given = points_argument(points)
    return [
        rows
        for part in parts
        for rows in _seeds_of(points, given, firsts[part], draws[part])
    ]  # fmt: skip


def _together(points: Points, n_starts: int, n_trials: int) -> Iterator[slice]:
    """Starts that share each read of the points."""
    width, lanes = row_shape(points.n_features)
    shared = n_trials * width * points.rows.dtype.itemsize
    candidates = 16 if lanes == 1 else _MOST_CANDIDATES  # a thread adds up so many / lanes
    most = max(1, min(_MOST_STARTS, candidates // n_trials, _MOST_SHARED // shared))
    for start in range(0, n_starts, most):
        yield slice(start, min(start + most, n_starts))


def _seeds_of(
    points: Points, given: PointsArgument, firsts: np.ndarray, draws: np.ndarray
) -> Iterator[Tensor]:
    device, (starts, others, trials) = points.rows.device, draws.shape
    k, chunks, blocks = others + 1, -(-points.n_rows // _CHUNK), 4 * n_processors(device)
    sent = np.zeros(1 + starts * (1 + k) + draws.size, dtype=np.int64)
    sent[1 : 1 + starts] = 1  # seeds that are there
    rows = slice(1 + starts, 1 + starts + starts * k)
    sent[rows].reshape(starts, k)[:, 0] = firsts
    sent[rows.stop :] = draws.reshape(-1).view(np.int64)
    there = torch.from_numpy(sent).to(device)
    distances = torch.empty(points.n_rows, starts, dtype=points.rows.dtype, device=device)
    sizes = np.cumsum([0, starts * chunks, starts * trials, blocks * starts * trials]).tolist()
    scratch = torch.empty(sizes[-1], dtype=torch.int64, device=device)
    first, work = there.data_ptr(), [scratch.data_ptr() + 8 * size for size in sizes]
    argument = _Seeds(
        distances=distances.data_ptr(), ticket=first, found=first + 8, rows=first + 8 * rows.start,
        fractions=first + 8 * rows.stop, masses=work[0], candidates=work[1], partial=work[2],
        k=k, chunks=chunks,
    )  # fmt: skip
    for kernel in _kernels(points, Arguments(given, argument), starts, trials) * others:
        kernel()
    found = there[1 : 1 + starts].tolist()
    for number, start in zip(found, there[rows].view(starts, k), strict=True):
        yield start[:number]


def _kernels(
    points: Points, arguments: Arguments, starts: int, trials: int
) -> tuple[Launch, Launch, Launch]:
    """What is launched for each seed."""
    device, (width, lanes) = points.rows.device, row_shape(points.n_features)
    constants = (
        *macros(points.rows, points.weights), ("D", width), ("LANES", lanes), ("STARTS", starts),
        ("TRIALS", trials),
    )  # fmt: skip
    shared = starts * trials * width * points.rows.dtype.itemsize
    chunks, processors = -(-points.n_rows // _CHUNK), n_processors(device)

    def launch(name: str, grid: Grid) -> Launch:
        return Launch("seeds.cu", name, device, grid, arguments, constants)

    return (
        launch("approach", Grid(min(chunks, 16 * processors), 256)),
        launch("draw", Grid(starts * trials, 256)),
        launch("choose", Grid(4 * processors, 256, shared)),
    )
