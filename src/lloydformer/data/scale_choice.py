"""Choice of a scaling method for each column: the rule of "auto".

The thresholds are from `benchmarks/column_scales.py`: 23 kinds of planted clusters and the real
sets with known classes. With any of them halved or doubled, the mean agreement on the planted
tables changes by at most 0.015.
"""

from dataclasses import dataclass, field

import numpy as np

# A logarithm is for columns of one sign whose middle 90 % span at least a factor of 5, with a tail
# that logarithms shorten by half.
_SPAN, _ASYMMETRY, _GROWTH, _LESS = 5.0, 0.25, 3.0, 0.5
# Whole numbers with at most so many different values are codes or ratings: their steps count.
_CODES = 10
# Distances from the median in robust standard deviations. Values beyond 10 are outliers or a heavy
# tail: one row there weighs as a hundred in the sum of squares.
_FAR, _REACH = 5.0, 10.0
# Smallest share of the rows that make a group of far values, and not a few outliers.
_GROUP = 0.01
# Largest share of values beyond the fences at `_FAR` for which outliers are moved to limits. More
# are a heavy tail; moved to a limit, they would make a peak there, which looks like a cluster.
_CLIPPED = 0.02
# Distance of the limits from the median, in robust standard deviations. Outliers that are moved to
# them weigh little; with 3 instead of 2, one row in 300 is a cluster of its own in more tables.
_LIMIT = 2.0
# Columns whose spreads differ by at most this factor may be in one unit, and are left alone.
COMPARABLE = 5.0
# Quantiles to the standard deviation of a normal distribution.
_QUARTILES, _MIDDLE, _TAIL = 1.349, 3.290, 1.645


@dataclass(frozen=True)
class Choice:
    """The scaling method of a column, the reason, and the numbers that decided."""

    method: str
    reason: str
    numbers: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ColumnSample:
    """The values of a column in ascending order, with weights, and its ends in all rows.

    Attributes
    ----------
    values, weights : ndarray of shape (m,)
        Without missing values and rows of weight 0.
    low, high : float
        The smallest and the largest value of all rows, which the sample may lack.
    """

    values: np.ndarray
    weights: np.ndarray
    low: float
    high: float

    @classmethod
    def of(
        cls, column: np.ndarray, weights: np.ndarray, ends: tuple[float, float] | None = None
    ) -> "ColumnSample":
        """Sort the values of a column."""
        present = ~np.isnan(column) & (weights > 0)
        values, weights = column[present].astype(np.float64), weights[present]
        order = np.argsort(values, kind="stable")
        values, weights = values[order], weights[order]
        if ends is None:
            ends = (float(values[0]), float(values[-1])) if len(values) else (0.0, 0.0)
        return cls(values, weights, *ends)

    def quantiles(self, *shares: float) -> np.ndarray:
        """Return quantiles; weight 2 counts as two equal rows.

        Inverse of the distribution, averaged where it is flat.
        """
        below = np.cumsum(self.weights)
        wanted = np.array(shares) * below[-1]
        near = 1e-12 * below[-1]
        last = len(below) - 1
        left = np.searchsorted(below, wanted - near).clip(max=last)
        right = np.searchsorted(below, wanted + near, side="right").clip(max=last)
        return self.values[left] / 2 + self.values[right] / 2

    @property
    def spread(self) -> float:
        """A robust standard deviation; of the middle 90 % if half of the values are equal."""
        low, first, third, high = self.quantiles(0.05, 0.25, 0.75, 0.95)
        if third > first:
            return float(third - first) / _QUARTILES
        if high > low:
            return float(high - low) / _MIDDLE
        mean = np.average(self.values, weights=self.weights)
        return float(np.sqrt(np.average((self.values - mean) ** 2, weights=self.weights)))

    @property
    def log_unit(self) -> float:
        """The unit of `signed_log`: linear below, logarithmic above.

        The 1 % quantile of the sizes, so that nearly all values are logarithms. For a column
        with both signs the median: a smaller unit would cut the column in two at 0.
        """
        sizes = self.sizes
        if not len(sizes.values):
            return 1.0
        return float(sizes.quantiles(0.01 if self.has_one_sign else 0.5)[0])

    @property
    def limits(self) -> tuple[float, float]:
        """Limits that outliers are moved to."""
        return self.fences(_LIMIT)

    def fences(self, distance: float) -> tuple[float, float]:
        """Return the values so many standard deviations from the median, within the data.

        The deviation of a side is the robust one, or that of the 5 or 95 % quantile if it is
        larger, so that a small cluster on one side is within the fence.
        """
        low, median, high = self.quantiles(0.05, 0.5, 0.95)
        with np.errstate(over="ignore"):  # an infinite fence is none
            below = median - distance * max(self.spread, (median - low) / _TAIL)
            above = median + distance * max(self.spread, (high - median) / _TAIL)
        return float(max(below, self.low)), float(min(above, self.high))

    @property
    def has_one_sign(self) -> bool:
        """True if no value is negative, or none is positive."""
        return self.low >= 0 or self.high <= 0

    @property
    def sizes(self) -> "ColumnSample":
        """The absolute values other than 0."""
        nonzero = self.values != 0
        return ColumnSample.of(np.abs(self.values[nonzero]), self.weights[nonzero])


def choose_scale(column: ColumnSample) -> Choice:
    """Choose the scale of one column by its distribution.

    In this order, the first that applies:

    - "constant": one value.
    - "binary": two values; they become -0.71 and 0.71. The variance is at most 1/2, so that rare
      values weigh no more than others, and values without noise no more than a column with noise.
    - "standard": whole numbers with at most 10 different values, as codes and ratings.
    - "log": one sign, the 95 % quantile of the sizes is at least 5 times the 5 % quantile, their
      asymmetry ((q95 - q50) - (q50 - q05)) / (q95 - q05) is above 0.25, and logarithms halve it.
      Or they halve the growth, log((q95 - q75) / (q25 - q05)), which is at least log(3): clusters
      of products are asymmetric in any unit, but the larger their values, the wider they are.
    - "robust": some values are more than 5 robust standard deviations from the median, and
      they are a group of their own: nearer values are fewer.
    - "clip": some values are more than 10 away, are no group, and at most 2 % are beyond the fences
      at 5: outliers. Values beyond limits near the others are moved to the limits.
    - "rank": some values are more than 10 away, and more are beyond the fences: heavy tails.
    - "standard": all others.
    """
    if column.low == column.high or not len(column.values):
        return Choice("constant", "one value")
    distinct = np.unique(column.values)
    if len(distinct) <= 2 and distinct[0] == column.low and distinct[-1] == column.high:
        return Choice("binary", "two values")
    if len(distinct) <= _CODES and (distinct == np.round(distinct)).all():
        numbers = {"values": float(len(distinct))}
        return Choice("standard", f"{len(distinct)} different whole numbers", numbers)
    numbers = {}
    if column.has_one_sign:
        sizes = column.sizes
        tail = sizes.quantiles(0.05, 0.25, 0.5, 0.75, 0.95)
        raw, logs = _asymmetry(tail), _asymmetry(np.log(tail))
        growth, log_growth = _growth(tail), _growth(np.log(tail))
        numbers = {
            "span": float(tail[-1] / tail[0]),
            "asymmetry": raw,
            "log_asymmetry": logs,
            "growth": growth,
            "log_growth": log_growth,
        }
        grows = growth >= _GROWTH and abs(np.log(log_growth)) <= _LESS * np.log(growth)
        if numbers["span"] >= _SPAN and raw > _ASYMMETRY and (abs(logs) <= _LESS * raw or grows):
            reason = f"skewed over a factor of {numbers['span']:.3g}"
            return Choice("log", reason, numbers)
    median, spread = float(column.quantiles(0.5)[0]), column.spread
    if spread == 0:  # other values are so rare that the sample has none of them
        return Choice("standard", "nearly one value", numbers)
    with np.errstate(over="ignore"):  # infinity is far, too
        reach = max(column.high - median, median - column.low) / spread
        z = (column.values - median) / spread
    numbers |= {"reach": float(reach)}
    weights = column.weights / column.weights.sum()
    groups = [_has_group(side, weights) for side in (z, -z)]
    in_groups = all(
        has_group or side.max(initial=0.0) <= _FAR
        for has_group, side in zip(groups, (z, -z), strict=True)
    )
    if any(groups) and in_groups:
        return Choice("robust", f"a group of values {reach:.3g} deviations away", numbers)
    if reach > _REACH:
        low, high = column.fences(_FAR)
        numbers["far"] = float(weights[(column.values < low) | (column.values > high)].sum())
        method = "clip" if numbers["far"] <= _CLIPPED else "rank"
        return Choice(method, f"values {reach:.3g} deviations away", numbers)
    return Choice("standard", "no long tail", numbers)


def _asymmetry(quantiles: np.ndarray) -> float:
    """Return a skewness between -1 and 1 from the 5, 50 and 95 % quantiles."""
    low, _, middle, _, high = quantiles
    return float(((high - middle) - (middle - low)) / (high - low)) if high > low else 0.0


def _growth(quantiles: np.ndarray) -> float:
    """Return how much wider the 75 to 95 % quantiles are spread than the 5 to 25 % quantiles."""
    low, first, _, third, high = quantiles
    if not (first > low and high > third):
        return 1.0
    return float((high - third) / (first - low))


def _has_group(z: np.ndarray, weights: np.ndarray) -> bool:
    """Return True if the far values on the upper side are a group: nearer values are fewer.

    Values are counted in intervals of two deviations. A tail has fewer in each than in the one
    before; a group comes after a dip.
    """
    far = z > _FAR
    if weights[far].sum() < _GROUP or z.max() > 10 * _REACH:
        return False
    counts = np.bincount((np.maximum(z, 0.0) / 2).astype(np.int64), weights * (z > 0))
    first = int(_FAR // 2) + 1  # the first interval that is wholly beyond
    if len(counts) <= first:
        return False
    peak = first + int(counts[first:].argmax())
    # Outliers beyond the group would weigh more than it.
    is_last = z.max() <= 2 * peak + _REACH
    is_peak = counts[peak] >= _GROUP / 2 and counts[peak] > 2 * counts[1:peak].min()
    return bool(is_last and is_peak)


def share_unit(columns: list[ColumnSample]) -> bool:
    """Return True if columns share their smallest and largest values, as pixels and ratings do.

    At least two of them do, and half of those that are not constant.
    """
    live = [column for column in columns if column.low < column.high]
    low, high = min((c.low for c in live), default=0.0), max((c.high for c in live), default=0.0)
    full = sum(column.low == low and column.high == high for column in live)
    return full >= max(2, len(live) / 2)
