"""Minimum and maximum of each column, in one pass over the data."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Survey:
    """What one pass over all rows finds.

    Attributes
    ----------
    ends : ndarray of shape (2, d)
        The smallest and the largest value of each column; NaN if there is one.
    first : ndarray of shape (d,)
        The first row, in float64.
    sums : ndarray of shape (d,)
        The sum of all rows less the first one, in float64.
    squares : float
        The sum of squared distances to the first row.
    n_rows : int
        Number of rows.
    sizes : ndarray of shape (8, d)
        For groups of 32 rows of a sample, the sum over rows of the size of each coordinate, seen
        from the middle of its column.
    n_sampled : int
        Rows of the sample, at most 256.
    """

    ends: np.ndarray
    first: np.ndarray
    sums: np.ndarray
    squares: float
    n_rows: int
    sizes: np.ndarray
    n_sampled: int

    @property
    def typical(self) -> float:
        """The size of most coordinates seen from the middles of their columns; outliers aside."""
        return typical_size(self.sizes.mean(axis=1), self.n_sampled)

    def seen_from(self, origin: np.ndarray) -> tuple[float, np.ndarray]:
        """The sum of squared norms and the sum (d,) of the rows less this origin."""
        away = self.first - origin
        squares = self.squares + 2 * (away @ self.sums) + self.n_rows * (away @ away)
        return squares, self.sums + self.n_rows * away


SAMPLE, SAMPLE_GROUPS = 256, 8
"""Rows that tell the size of most coordinates, and groups of them."""


def typical_size(sums: np.ndarray, count: int) -> float:
    """The size of most coordinates, which a few outliers do not change.

    Parameters
    ----------
    sums : ndarray of shape (8,)
        For groups of 32 rows of a sample, the sum of the mean size of their coordinates.
    count : int
        Rows of the sample, at most 256.
    """
    each = SAMPLE // SAMPLE_GROUPS
    counts = np.clip(count - each * np.arange(SAMPLE_GROUPS), 0, each)
    means = np.sort(sums[counts > 0] / counts[counts > 0])
    return float(means[len(means) // 2])


_ROWS = 1 << 16
"""Rows of a chunk."""
_LINES = 1 << 10
"""Lines that a chunk is reshaped to."""


def extent(points: Float[Tensor, "n d"]) -> Float[Tensor, "2 d"]:
    """Return the minimum and the maximum of each column; NaN for a column that has one."""
    if points.device.type != "cpu":
        return torch.stack([points.amin(dim=0), points.amax(dim=0)])
    array = points.detach().numpy()  # NumPy: torch's threads wait for each other if busy
    if len(array) <= _ROWS:
        return torch.from_numpy(_ends(array))
    ends = np.stack([_ends(array[i : i + _ROWS]) for i in range(0, len(array), _ROWS)])
    return torch.from_numpy(np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)]))


def _ends(part: np.ndarray) -> np.ndarray:
    width = part.shape[1]
    if len(part) == _ROWS and part.flags.c_contiguous:  # NumPy reduces long lines much faster
        lines = part.reshape(_LINES, -1)
        part = np.concatenate([lines.min(axis=0), lines.max(axis=0)]).reshape(-1, width)
    return np.array([part.min(axis=0), part.max(axis=0)])
