"""Points as the kernels read them, and the units of their fixed-point sums.

Sums of points are kept in 64-bit integers. Integers can be added in any order, so atomic additions
give the same bits every time.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_SUM_BITS = 62
"""The sum of all points stays below 2^62."""
_POINT_BITS = 50
"""A single coordinate stays below 2^50, so that float64 rounds it to a whole number."""
_RESOLUTION = {torch.float32: 2.0**-22, torch.float64: 2.0**-33}
"""How fine a unit of the sums must be, in standard deviations of the data."""


@dataclass(frozen=True)
class Points:
    """Dense rows on one device.

    Attributes
    ----------
    rows : Tensor of shape (n, d)
        In float32 or float64, row by row.
    origin : Tensor of shape (d,)
        Subtracted from each row, in the precision of the rows.
    weights : Tensor of shape (n,) or None
        In float64.
    reach : float
        Upper bound of the coordinates' absolute values after the origin is subtracted.
    heaviest : float
        Upper bound of the weights; 1 without weights.
    """

    rows: Tensor
    origin: Tensor
    weights: Tensor | None
    reach: float
    heaviest: float = 1.0

    @property
    def n_rows(self) -> int:
        return self.rows.shape[0]

    @property
    def n_features(self) -> int:
        return self.rows.shape[1]

    @property
    def half_unit(self) -> float:
        """A power of two that brings coordinates into the range of float16: at most 2^15."""
        return math.ldexp(1.0, 15 - _exponent(self.reach))

    @property
    def sum_unit(self) -> float:
        """Units of the fixed-point sums in 1.0, a power of two."""
        return math.ldexp(1.0, self._bits - _exponent(self.reach * self.heaviest))

    @property
    def mass_unit(self) -> float:
        """Units of the fixed-point masses in 1.0, a power of two; 1 without weights."""
        if self.weights is None:
            return 1.0
        return math.ldexp(1.0, self._bits - _exponent(self.heaviest))

    @property
    def _bits(self) -> int:
        return min(_SUM_BITS - (self.n_rows - 1).bit_length(), _POINT_BITS)

    def resolves(self, deviation: float, lightest: float = 1.0) -> bool:
        """Are fixed-point sums fine enough for points of this standard deviation?

        lightest: the smallest weight above 0. A cluster may consist of such points alone.
        """
        finest = deviation * lightest * _RESOLUTION[self.rows.dtype]
        return 1 / self.sum_unit <= finest


def is_vector(rows: Tensor) -> bool:
    """Can kernels read four numbers of a row at once?"""
    aligned = rows.data_ptr() % 16 == 0 and rows.shape[-1] % 4 == 0
    return aligned and rows.dtype == torch.float32


def _exponent(value: float) -> int:
    """The smallest e with value <= 2^e."""
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent
