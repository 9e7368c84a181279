"""Curves: nonlinear maps of single columns, by logarithms, ranks or limits."""

from dataclasses import dataclass

import numpy as np

from lloydformer.data.mapped_files import scratch_array

# Knots of the piecewise linear curve of ranks: between them, ranks are off by less than 0.1 %.
KNOTS = 1024
# Rows of a chunk in float64; bounds temporary memory.
CHUNK = 1 << 14


def signed_log(values: np.ndarray, unit: float) -> np.ndarray:
    r"""Return x / u for values up to u, and $\mathrm{sign}(x) (1 + \log(|x| / u))$ beyond.

    It is odd, smooth and increasing, so it is defined for zeros and for negative values.
    """
    size = np.abs(values) / unit
    logs = 1.0 + np.log(np.maximum(size, 1.0))
    return np.sign(values) * np.where(size <= 1.0, size, logs)


def signed_exp(values: np.ndarray, unit: float) -> np.ndarray:
    """Undo `signed_log`."""
    size = np.abs(values)
    powers = np.exp(np.maximum(size, 1.0) - 1.0)
    return np.sign(values) * np.where(size <= 1.0, size, powers) * unit


def rank_knots(values: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `KNOTS` distinct values, and the share of the weight below each.

    A value counts half of its own weight as below it, so that the mean share is 1/2.
    """
    distinct, places = np.unique(values, return_inverse=True)
    mass = np.bincount(places, weights)
    shares = (np.cumsum(mass) - mass / 2) / mass.sum()
    if len(distinct) > KNOTS:
        wanted = np.linspace(shares[0], shares[-1], KNOTS)
        kept = np.unique([*np.searchsorted(shares, wanted[:-1]), len(shares) - 1])
        distinct, shares = distinct[kept], shares[kept]
    return distinct, shares


@dataclass(frozen=True, eq=False)
class Curves:
    """The curve of each column: none, a signed logarithm, or a piecewise linear one.

    The knots of a piecewise linear curve are values and the shares of the values below them, or two
    limits with the shares 0 and 1. Beyond the knots it is flat.

    Attributes
    ----------
    units : ndarray of shape (d,)
        The unit of the logarithm of a column; 0 for the others.
    counts : ndarray of shape (d,)
        The number of knots of a piecewise linear curve; 0 for the other columns.
    values, shares : ndarray of shape (sum of counts,)
        The knots of all columns, one column after the other.
    """

    units: np.ndarray
    counts: np.ndarray
    values: np.ndarray
    shares: np.ndarray

    def __post_init__(self) -> None:
        total = int(self.counts.sum())
        good = (
            (self.units >= 0).all()
            and (self.counts >= 0).all()
            and len(self.values) == len(self.shares) == total
        )
        for column in np.flatnonzero(self.counts).tolist() if good else ():
            values, shares = self._knots(column)
            good = good and (np.diff(values) > 0).all() and (np.diff(shares) > 0).all()
        if not good:
            raise ValueError("found curves whose units or knots do not increase")

    @classmethod
    def build(
        cls,
        n_features: int,
        units: dict[int, float],
        knots: dict[int, tuple[np.ndarray, np.ndarray]],
    ) -> "Curves | None":
        """Return the curves of some columns; None if there are none."""
        if not units and not knots:
            return None
        all_units, counts = np.zeros(n_features), np.zeros(n_features, dtype=np.int64)
        for column, unit in units.items():
            all_units[column] = unit
        for column, (values, _) in knots.items():
            counts[column] = len(values)
        ordered = [knots[column] for column in sorted(knots)]
        parts = [np.concatenate([k[i] for k in ordered] or [np.empty(0)]) for i in range(2)]
        return cls(all_units, counts, *parts)

    def _knots(self, column: int) -> tuple[np.ndarray, np.ndarray]:
        start = int(self.counts[:column].sum())
        part = slice(start, start + int(self.counts[column]))
        return self.values[part], self.shares[part]

    def bend(self, rows: np.ndarray) -> np.ndarray:
        """Return rows after the curves, in their precision; NaN stays NaN."""
        return self._map(rows, inverse=False)

    def unbend(self, rows: np.ndarray) -> np.ndarray:
        """Undo `bend`."""
        return self._map(rows, inverse=True)

    def _map(self, rows: np.ndarray, inverse: bool) -> np.ndarray:
        out = scratch_array(*rows.shape, dtype=rows.dtype)
        for start in range(0, len(rows), CHUNK):
            part = rows[start : start + CHUNK].astype(np.float64)
            for column in np.flatnonzero(self.units).tolist():
                curve = signed_exp if inverse else signed_log
                part[:, column] = curve(part[:, column], float(self.units[column]))
            for column in np.flatnonzero(self.counts).tolist():
                values, shares = self._knots(column)
                known, wanted = (shares, values) if inverse else (values, shares)
                given = part[:, column]
                bent = np.interp(given, known, wanted)
                # np.interp would give infinite values the share of the largest one.
                part[:, column] = np.where(np.isfinite(given), bent, given)
            out[start : start + CHUNK] = part
        return out
