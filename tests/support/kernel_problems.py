"""Random problems for the kernels: sizes, scales, ties, duplicates, outliers, weights, precision.

A problem is a function of its seed, so that a failure can be repeated. One in four is extreme: its
numbers are denormal, up to 1e18, or one row is up to 1e9 times as far as the others.
"""

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_statistics import Scaling
from lloydformer.engines import Native


def mixture(rng, n, d):
    middles = rng.uniform(-4, 4, size=(rng.integers(1, 9), d))
    return rng.normal(size=(n, d)) + middles[rng.integers(len(middles), size=n)]


def uniform(rng, n, d):
    return rng.uniform(size=(n, d))


def grid(rng, n, d):
    """Whole numbers: exact ties, and points at the same place."""
    return rng.integers(-3, 4, size=(n, d)).astype(float)


def duplicates(rng, n, d):
    few = mixture(rng, max(1, n // 8), d)
    return few[rng.integers(len(few), size=n)]


def outliers(rng, n, d):
    points = mixture(rng, n, d)
    points[rng.integers(n, size=3)] *= 10.0 ** rng.uniform(1, 5)
    return points


def line(rng, n, d):
    return rng.normal(size=(n, 1)) * np.linspace(1, 2, d)


SHAPES = (mixture, uniform, grid, duplicates, outliers, line)


@dataclass(frozen=True)
class Problem:
    """Points with weights, centers in their coordinates, and what the kernels run with.

    Attributes
    ----------
    data : TensorBlocks
        As the engine gets them.
    rows : ndarray of shape (n, d)
        The rows as kernels see them, in float64.
    error : ndarray of shape (n,)
        Upper bound of the rounding of each number of a row when a kernel reads it.
    weights : ndarray of shape (n,)
        Ones if the data have none.
    centers : Tensor of shape (k, d)
        In the precision of the data.
    engine : Native
        Threads, bounds, screening and instruction set.
    extreme : bool
        Numbers for which only labels, sums and distances are promised, and are checked.
    rng : Generator
        For the numbers of folds.
    """

    data: TensorBlocks
    rows: np.ndarray
    error: np.ndarray
    weights: np.ndarray
    centers: torch.Tensor
    engine: Native
    extreme: bool
    rng: np.random.Generator

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def d(self) -> int:
        return self.rows.shape[1]

    @property
    def k(self) -> int:
        return len(self.centers)

    @property
    def eps(self) -> float:
        return float(torch.finfo(self.data.dtype).eps)


def problem(seed: int, instruction_sets: list[str]) -> Problem:
    rng = np.random.default_rng(seed)
    n, d, k = _sizes(rng)
    extreme = bool(rng.random() < 0.25)
    dtype = rng.choice([np.float32, np.float64])
    kind = rng.choice(["plain", "scaled", "directions", "both"], p=[0.5, 0.2, 0.2, 0.1])
    scale = 10.0 ** rng.uniform(-6, 6)
    if extreme:
        kind = "plain"
    offset = scale * 10.0 ** rng.uniform(0, 3) * rng.integers(2)
    shape = SHAPES[rng.integers(len(SHAPES))]
    x = (shape(rng, n, d) + (0.5 if "plain" not in kind else 0.0)) * scale + offset
    weights = _weights(rng, n, dtype)
    x = (_stretched(rng, x / scale, dtype, weights) if extreme else x).astype(dtype)
    points = torch.from_numpy(_placed(rng, x))
    scaling = None
    if kind in ("scaled", "both"):
        shift = torch.from_numpy(x.mean(axis=0, dtype=np.float64) - 9 * scale * (kind == "both"))
        scaling = Scaling(shift, torch.from_numpy(rng.uniform(0.5, 3, size=d) * scale))
    data = TensorBlocks(
        points, None if weights is None else torch.from_numpy(weights),
        int(rng.choice([7, 64, 512, 8192])), directions=kind in ("directions", "both"),
        scaling=scaling, mapped=bool(rng.integers(2)),
    )  # fmt: skip
    rows, error = _seen(x, data)
    chosen = rng.integers(n, size=k)
    noise = rng.normal(size=(k, d)) * np.sqrt((rows**2).mean()) * rng.choice([0.0, 0.1, 1.0])
    engine = Native(
        int(rng.integers(1, 5)), bounded=bool(rng.integers(3)),
        screened=[None, True, False][rng.integers(3)],
        instruction_set=str(rng.choice(instruction_sets)),
    )  # fmt: skip
    centers = torch.from_numpy((rows[chosen] + noise).astype(dtype))
    ones = np.ones(n) if weights is None else weights
    return Problem(data, rows, error, ones, centers, engine, extreme, rng)


def _sizes(rng) -> tuple[int, int, int]:
    """Numbers of rows, features and centers: often small, sometimes many features or centers."""
    what = rng.choice(["small", "wide", "many centers"], p=[0.75, 0.15, 0.1])
    if what == "wide":
        return (
            int(rng.integers(1, 250)),
            int(2000 * rng.random() ** 3) + 40,
            int(rng.integers(1, 80)),
        )
    if what == "many centers":  # up to 5,000; the reference compares them with all rows
        k = int(40 * 125 ** rng.random())
        return int(rng.integers(1, 1 + 100_000 // k)), int(rng.integers(1, 20)), k
    n = int(rng.choice([rng.integers(1, 60), rng.integers(60, 700), rng.integers(700, 2500)]))
    d, k = int(rng.choice([1, 2, 3, rng.integers(4, 40)])), int(rng.integers(1, 40))
    return n, d, k


def _stretched(rng, x: np.ndarray, dtype, weights: np.ndarray | None) -> np.ndarray:
    """Rows at any scale, with one far away, as far as sums of w |x|^2 are finite in their kind."""
    if rng.random() < 0.6:
        x[rng.integers(len(x))] *= 10.0 ** rng.uniform(2, 9)
    least = -44.0 if dtype == np.float32 else -310.0
    x = x * 10.0 ** rng.choice([rng.uniform(-18, 18), rng.uniform(least, -18)], p=[0.8, 0.2])
    mass = 4 * x.size * (1.0 if weights is None else max(1.0, float(weights.max())))
    most = math.sqrt(float(np.finfo(dtype).max) / mass) / 10
    return x * min(1.0, most / max(float(np.abs(x).max()), 1e-300))


def _weights(rng, n: int, dtype) -> np.ndarray | None:
    """None; some zeros; or many powers of ten, up to 1e12 (products in float32 must hold them)."""
    if rng.random() < 0.4:
        return None
    powers = rng.choice([0.0, 2.0, 12.0]) if dtype == np.float32 else rng.choice([0.0, 3.0, 30.0])
    weights = 10.0 ** rng.uniform(-powers, powers, size=n) * rng.uniform(0.5, 2, size=n)
    weights *= rng.random(n) < rng.choice([0.5, 0.9, 1.0])
    weights[rng.integers(n)] = 1.0
    return weights


def _placed(rng, x: np.ndarray) -> np.ndarray:
    """The same numbers: at an address that is no multiple of a vector, or mapped from a file."""
    if rng.random() < 0.1:
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "x.npy", x)
            return np.load(Path(folder) / "x.npy", mmap_mode="c")
    before = int(rng.integers(4))
    room = np.empty(x.size + before, dtype=x.dtype)[before:].reshape(x.shape)
    room[:] = x
    return room


def _seen(x: np.ndarray, data: TensorBlocks) -> tuple[np.ndarray, np.ndarray]:
    """Rows in float64, and the rounding of a kernel that reads them in the precision of x."""
    eps, kind = np.finfo(x.dtype).eps, x.dtype
    if data.scaling is None and not data.directions:
        # Exact comparisons and distances read rows without rounding, other kernels with it.
        origin = data.origin.numpy()
        exact = x.astype(np.float64) - origin.astype(np.float64)
        return exact, np.abs((x - origin).astype(np.float64) - exact).max(axis=1)
    rows, error = x.astype(np.float64), np.zeros(len(x))
    if data.scaling is not None:
        ends = (data.scaling.shift, data.scaling.scale)
        shift, scale = (v.numpy().astype(kind).astype(float) for v in ends)
        size = (np.abs(rows) + np.abs(shift)) / scale
        rows, error = (rows - shift) / scale, 4 * eps * size.max(axis=1)
    origin = data.origin.numpy().astype(float)
    error = error + (2 * eps * np.abs(origin).max() if data.scaling is not None else 0)
    rows = rows - origin
    if data.directions:
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        error = 8 * eps + np.sqrt(x.shape[1]) * 4 * error / norms[:, 0]
        rows = rows / norms
    return rows, error
