"""Statistics of columns: minima and maxima, sums, and the scaling that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.data.column_scales import SCALES, Scale, fit_column_scales
from lloydformer.data.curves import Curves
from lloydformer.data.scale_choice import Choice

# Rows of a chunk when minima and maxima are computed; bounds temporary memory.
_ROWS = 1 << 16
# NumPy reduces along long lines only with vector instructions. So a whole chunk is viewed as 1024
# lines of 64 rows each (65,536 x 8 in float32: 0.16 ms, not 7.9 ms, on one core).
_LINES = 1 << 10
# Rows of a chunk when means are computed in float64; bounds temporary memory.
_MEAN_ROWS = 1 << 14
# Rows of the sample that tells the size of most coordinates, and groups of them. Of the means of
# the groups the median is taken, so that a few outliers change nothing.
SAMPLE, SAMPLE_GROUPS = 256, 8


@dataclass(frozen=True)
class ColumnStatistics:
    """Sums and extremes of all rows, computed in one pass.

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
        For groups of 32 rows of a sample, the sum of the absolute value of each coordinate relative
        to the middle of its column.
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
        """Absolute value of most coordinates relative to the middles of their columns."""
        return typical_size(self.sizes.mean(axis=1), self.n_sampled)

    def moments_about(self, origin: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum of squared norms and the sum (d,) of the rows less this origin."""
        shift = self.first - origin
        squares = self.squares + 2 * (shift @ self.sums) + self.n_rows * (shift @ shift)
        return squares, self.sums + self.n_rows * shift


def typical_size(sums: np.ndarray, count: int) -> float:
    """Return the size of most coordinates, which a few outliers do not change.

    Parameters
    ----------
    sums : ndarray of shape (8,)
        For groups of 32 rows of a sample, the sum of the mean size of their coordinates.
    count : int
        Rows of the sample, at most 256.
    """
    group = SAMPLE // SAMPLE_GROUPS
    counts = np.clip(count - group * np.arange(SAMPLE_GROUPS), 0, group)
    means = np.sort(sums[counts > 0] / counts[counts > 0])
    return float(means[len(means) // 2])


def column_min_max(points: Float[Tensor, "n d"]) -> Float[Tensor, "2 d"]:
    """Return the minimum and the maximum of each column; NaN for a column that has one."""
    if points.device.type != "cpu":
        return torch.stack([points.amin(dim=0), points.amax(dim=0)])
    array = points.detach().numpy()  # NumPy: torch's threads wait for each other if busy
    ends = []
    for start in range(0, len(array), _ROWS):
        part = array[start : start + _ROWS]
        if len(part) == _ROWS and part.flags.c_contiguous:
            lines = part.reshape(_LINES, -1)
            part = np.concatenate([lines.min(axis=0), lines.max(axis=0)])
            part = part.reshape(-1, array.shape[1])
        ends.append((part.min(axis=0), part.max(axis=0)))
    low, high = np.stack(ends, axis=1)
    return torch.from_numpy(np.stack([low.min(axis=0), high.max(axis=0)]))


@dataclass(frozen=True, eq=False)
class Scaling:
    """Maps x to (x - shift) / scale, column by column; constant columns become 0.

    Columns with a curve (a logarithm, or ranks) are bent first. Engines read rows that are bent
    already (`TensorBlocks.bent`); rows in the units of the data go through `from_data`.

    Attributes
    ----------
    shift, scale : Tensor of shape (d,)
        Of rows after the curves.
    curves : Curves or None
        None if no column has one.
    choices : tuple of Choice
        The method of each column and why; empty if the scaling is that of a saved model.
    """

    shift: Float[Tensor, " d"]
    scale: Float[Tensor, " d"]
    curves: Curves | None = None
    choices: tuple[Choice, ...] = ()

    @property
    def is_identity(self) -> bool:
        """True if rows are left as they are."""
        return self.curves is None and not self.shift.any() and bool((self.scale == 1).all())

    def apply(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Scale rows after the curves."""
        return (rows - self.shift.to(rows)) / self.scale.to(rows)

    def undo(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Undo `apply`."""
        return rows * self.scale.to(rows) + self.shift.to(rows)

    def bend(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Return rows in the units of the data after the curves: in a scratch file, if large."""
        if self.curves is None:
            return rows
        bent = self.curves.bend(rows.detach().cpu().numpy())
        return torch.from_numpy(np.asarray(bent)).to(rows)

    def unbend(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Undo `bend`."""
        if self.curves is None:
            return rows
        return torch.from_numpy(self.curves.unbend(rows.detach().cpu().numpy())).to(rows)

    def from_data(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Scale rows in the units of the data."""
        return self.apply(self.bend(rows))

    def to_data(self, rows: Float[Tensor, "m d"]) -> Float[Tensor, "m d"]:
        """Return scaled rows in the units of the data."""
        return self.unbend(self.undo(rows))


def fit_scaling(
    points: Float[Tensor, "n d"], scale: Scale, words: Sequence[tuple[int, int]] = ()
) -> Scaling:
    """Compute the scaling of some points.

    scale: "minmax" to [0, 1], "standard" to mean 0 and variance 1; the others are those of
    `column_scales.fit_column_scales`. words: the first column and the number of columns of each
    column of words.
    """
    if scale not in SCALES:
        options = ", ".join(f'"{name}"' for name in SCALES)
        raise ValueError(f"scale: found {scale!r}; pass {options} or None")
    curves: Curves | None = None
    choices = (Choice(scale, "as given"),) * points.shape[1]
    missing = bool(points.isnan().any())
    if missing and scale in ("minmax", "standard"):
        values = points.double().numpy()
        with np.errstate(invalid="ignore"):
            if scale == "standard":
                ends = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
            else:
                ends = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
                ends = ends[0], ends[1] - ends[0]
        shift, spread = (torch.from_numpy(each) for each in ends)
    elif scale == "minmax":
        shift, high = column_min_max(points).double()
        spread = high - shift
    elif scale == "standard":
        first = points[0].double()  # makes the mean of a constant column exact
        shift = first + _mean_power(points, first, power=1)
        spread = _mean_power(points, shift, power=2).sqrt()
    else:
        found = fit_column_scales(points.numpy(), scale, words=words)
        shift, spread = torch.from_numpy(found.shift), torch.from_numpy(found.scale)
        curves, choices = found.curves, found.choices
    if len(large := (~spread.to(points.dtype).isfinite()).nonzero()):
        raise ValueError(
            f"scale: found values in column number {int(large[0]) + 1} whose spread "
            f"{points.dtype} cannot hold; divide them by a large number first"
        )
    return Scaling(shift, torch.where(spread > 0, spread, 1.0), curves, choices)


def _mean_power(points: Tensor, center: Tensor, power: int) -> Tensor:
    """Return the mean of (x - center)^power over all rows, in float64, chunk by chunk."""
    total = torch.zeros(points.shape[1], dtype=torch.float64)
    for part in torch.split(points, _MEAN_ROWS):
        total += (part.double() - center).pow(power).sum(dim=0)
    return total / len(points)
