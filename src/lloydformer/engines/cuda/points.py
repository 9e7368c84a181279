"""Points as the kernels read them, and the units of their fixed-point sums.

Sums of points are kept in 64-bit integers. Integers can be added in any order, so atomic additions
are deterministic, and a point that leaves a cluster is subtracted without a rest.
"""

import ctypes
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.engines.cuda.nvrtc import Macros
from lloydformer.fork_safety import cached_property

# |sum of all points| < 2^62: a 64-bit integer holds it with its sign, and one bit to spare for a
# sum that is not finished.
_SUM_BITS = 62
# A coordinate stays below 2^50 units: kernels round by adding 1.5 2^52 in float64, which leaves
# whole numbers up to 2^51 in absolute value.
_POINT_BITS = 50
# Largest unit of the sums, in standard deviations of the data; beyond it the kernels decline.
# Chosen by hand: 2^-22 is near the rounding of float32 rows themselves, and 2^-33 keeps ten digits
# of float64 rows (50 bits leave no finer grid beside outliers).
_COARSEST = {torch.float32: 2.0**-22, torch.float64: 2.0**-33}

_C_TYPES: dict[str, type] = {
    "pointer": ctypes.c_void_p,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "uint": ctypes.c_uint,
    "long": ctypes.c_int64,
}


def list_fields(*groups: str) -> list[tuple[str, type]]:
    """Return the fields of a C struct; a group is a type and names, such as "int n d"."""
    split = (group.split() for group in groups)
    return [(name, _C_TYPES[kind]) for kind, *names in split for name in names]


class PointsArgument(ctypes.Structure):
    """`struct Points` of kernels/prelude.cuh."""

    _fields_ = list_fields(
        "pointer rows origin weights", "double half_unit sum_unit mass_unit", "int n d"
    )


@dataclass(frozen=True)
class DevicePoints:
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
        """Bits of a weighted coordinate, such that n of them stay below 2^62."""
        return min(_SUM_BITS - (self.n_rows - 1).bit_length(), _POINT_BITS)

    @cached_property
    def argument(self) -> PointsArgument:
        """The points as kernels take them; valid as long as this object lives."""
        weights = None if self.weights is None else self.weights.data_ptr()
        units = self.half_unit, self.sum_unit, self.mass_unit
        pointers = self.rows.data_ptr(), self.origin.data_ptr(), weights
        return PointsArgument(*pointers, *units, *self.rows.shape)

    @cached_property
    def macros(self) -> Macros:
        """Macros that every kernel over these points is compiled with."""
        return list_macros(self.rows, self.weights)

    def can_resolve(self, deviation: float, lightest: float = 1.0) -> bool:
        """Return True if fixed-point sums are fine enough for points of this standard deviation.

        lightest: the smallest weight above 0. A cluster may consist of such points alone.
        """
        return 1 / self.sum_unit <= deviation * lightest * _COARSEST[self.rows.dtype]


def list_macros(rows: Tensor, weights: Tensor | None = None) -> Macros:
    """Return the macros for the precision of the rows, for vector loads and for weights."""
    real = "double" if rows.dtype == torch.float64 else "float"
    vector, weighted = int(can_load_vectors(rows)), int(weights is not None)
    return ("REAL", real), ("VECTOR", vector), ("WEIGHTED", weighted)


def can_load_vectors(rows: Tensor) -> bool:
    """Return True if kernels can load four numbers of a row at once, as a float4."""
    aligned = rows.data_ptr() % 16 == 0 and rows.shape[-1] % 4 == 0
    return aligned and rows.dtype == torch.float32


def _exponent(value: float) -> int:
    """Return the smallest e with value <= 2^e."""
    mantissa, exponent = math.frexp(value)
    return exponent - 1 if mantissa == 0.5 else exponent
