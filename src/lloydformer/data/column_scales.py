"""Scales of columns: computed for a table of numbers, column by column, in NumPy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from lloydformer.data.curves import CHUNK, Curves, rank_knots
from lloydformer.data.scale_choice import (
    COMPARABLE,
    Choice,
    ColumnSample,
    choose_scale,
    share_unit,
)

Scale = Literal["auto", "standard", "minmax", "robust", "log", "rank", "clip"]
SCALES = get_args(Scale)
# Quantiles and choices are of at most this many rows, evenly spaced. Their errors are below 0.4 %
# of the rows, and sorting 20 columns takes 0.1 s.
_SAMPLED = 1 << 16
# The share of rows with a smaller value is uniform between 0 and 1.
_RANK = 0.5, 1 / np.sqrt(12)


@dataclass(frozen=True, eq=False)
class ColumnScales:
    """The scale of each column: its curve if it has one, then (x - shift) / scale.

    Attributes
    ----------
    shift, scale : ndarray of shape (d,)
        Of the values after the curves.
    curves : Curves or None
        Logarithms, ranks and limits.
    choices : tuple of Choice
        The method of each column, and why.
    """

    shift: np.ndarray
    scale: np.ndarray
    curves: Curves | None
    choices: tuple[Choice, ...]


def fit_column_scales(
    points: np.ndarray,
    method: Scale,
    weights: np.ndarray | None = None,
    words: Sequence[tuple[int, int]] = (),
) -> ColumnScales:
    """Compute the scale of each column.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        NaN is a missing value.
    method : str
        The method of all columns, or "auto".
    weights : ndarray of shape (n,), optional
        Weights; rows of weight 0 do not count.
    words : sequence of (start, width)
        Columns of 0 and 1 that one column of words became. They weigh together at most half as
        much as a column of numbers, unless the method is "standard" or "minmax".
    """
    n_features = points.shape[1]
    if weights is not None:
        points, weights = points[weights > 0], weights[weights > 0]
    low, high = _ends(points)
    step = -(-len(points) // _SAMPLED)
    sample = np.asarray(points[::step], dtype=np.float64)
    masses = np.ones(len(sample)) if weights is None else weights[::step]
    columns = [
        ColumnSample.of(sample[:, j], masses, (float(low[j]), float(high[j])))
        for j in range(n_features)
    ]
    coded = {} if method in ("standard", "minmax") else _weigh_words(words)
    choices = [coded[j] if j in coded else _choose(columns[j], method) for j in range(n_features)]
    units = {j: columns[j].log_unit for j, c in enumerate(choices) if c.method == "log"}
    knots = {
        j: rank_knots(columns[j].values, columns[j].weights)
        if c.method == "rank"
        else (np.array(columns[j].limits), np.array([0.0, 1.0]))
        for j, c in enumerate(choices)
        if c.method in ("rank", "clip")
    }
    curves = Curves.build(n_features, units, knots)
    shift, scale = np.zeros(n_features), np.ones(n_features)
    means, spreads = (
        _moments(points, curves, weights)
        if any(c.method in ("standard", "log", "clip") for c in choices)
        else (shift, scale)
    )
    for j, choice in enumerate(choices):
        if choice.method == "constant":
            shift[j] = low[j]
        elif choice.method == "binary":
            shift[j] = low[j] / 2 + high[j] / 2
            scale[j] = (high[j] - low[j]) / np.sqrt(2)
        elif choice.method == "minmax":
            shift[j], scale[j] = low[j], high[j] - low[j]
        elif choice.method in ("standard", "log", "clip"):
            shift[j], scale[j] = means[j], spreads[j]
        elif choice.method == "robust":
            shift[j], scale[j] = columns[j].quantiles(0.5)[0], columns[j].spread
        elif choice.method == "rank":
            shift[j], scale[j] = _RANK
        elif choice.method == "words":
            scale[j] = choice.numbers["scale"]
    if method == "auto" and not coded:
        alone = _leave_alone(columns, choices, scale)
        if alone is not None:
            ones = np.ones(n_features)
            return ColumnScales(np.zeros(n_features), ones, None, (alone,) * n_features)
    scale[~(scale > 0)] = 1.0  # NaN is a column without values
    return ColumnScales(shift, scale, curves, tuple(choices))


def _ends(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each column; 0 for one without values."""
    low = np.full(points.shape[1], np.inf)
    high = -low
    for start in range(0, len(points), CHUNK):
        part = points[start : start + CHUNK]
        low = np.fmin(low, np.fmin.reduce(part, axis=0))
        high = np.fmax(high, np.fmax.reduce(part, axis=0))
    empty = low > high
    return np.where(empty, 0.0, low), np.where(empty, 0.0, high)


def _weigh_words(words: Sequence[tuple[int, int]]) -> dict[int, Choice]:
    """Return the choices for the columns that columns of words became.

    Two rows with different words are 1 / sqrt(1 - 1 / m) apart, m being the number of words. The
    variances of the m columns add up to at most 1/2, if all words are equally frequent. For two
    words the distance is sqrt(2), as in a "binary" column.

    A weight of 1/2, because words and flags have no noise: with 1, a random flag beside two columns
    of numbers with three clusters, five deviations apart, halves the adjusted Rand index
    (benchmarks/column_scales.py). k-prototypes has such a weight, too (Huang, 1998).
    """
    found: dict[int, Choice] = {}
    for start, width in words:
        if width > 1:
            scale = float(np.sqrt(2 * (1 - 1 / width)))
            choice = Choice(
                "words", f"{width} words weigh together as one column", {"scale": scale}
            )
            found |= dict.fromkeys(range(start, start + width), choice)
    return found


def _choose(column: ColumnSample, method: str) -> Choice:
    if method == "auto":
        return choose_scale(column)
    if column.low == column.high or not len(column.values):
        return Choice("constant", "one value")
    return Choice(method, "as given")


def _moments(
    points: np.ndarray, curves: Curves | None, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations after the curves, in two passes, without NaN."""

    def mean_of(center: np.ndarray, power: int) -> np.ndarray:
        total, mass = np.zeros(points.shape[1]), np.zeros(points.shape[1])
        for start in range(0, len(points), CHUNK):
            part = np.asarray(points[start : start + CHUNK], dtype=np.float64)
            part = part if curves is None else curves.bend(part)
            part = (part - center) ** power
            known = ~np.isnan(part)
            if weights is not None:
                w = weights[start : start + CHUNK, None]
                part, known = part * w, known * w
            total += np.nansum(part, axis=0)
            mass += known.sum(axis=0)
        return total / np.where(mass > 0, mass, 1.0)

    # Relative to the first row, so that columns far from 0 keep their digits.
    first = np.nan_to_num(np.asarray(points[:1], dtype=np.float64))
    first = (first if curves is None else curves.bend(first))[0]
    with np.errstate(over="ignore", invalid="ignore"):  # refused by those who know the column
        means = first + mean_of(first, 1)
        return means, np.sqrt(mean_of(means, 2))


def _leave_alone(
    columns: Sequence[ColumnSample], choices: Sequence[Choice], scale: np.ndarray
) -> Choice | None:
    """Return why all columns are left in their own units; None if they are scaled."""
    live = [j for j, choice in enumerate(choices) if choice.method != "constant"]
    if len(live) < 2:
        return None
    if share_unit(list(columns)):
        low, high = min(columns[j].low for j in live), max(columns[j].high for j in live)
        numbers = {"low": float(low), "high": float(high)}
        return Choice("none", f"columns share their range, {low:.6g} to {high:.6g}", numbers)
    spreads = scale[live]
    # Not finite: refused by those who know the column. Zero: a spread that underflows.
    if not np.isfinite(spreads).all() or not spreads.all():
        return None
    ratio = float(spreads.max() / spreads.min())
    simple = all(choices[j].method in ("standard", "robust", "binary") for j in live)
    if simple and ratio <= COMPARABLE:
        return Choice("none", f"spreads differ by a factor of {ratio:.2g} only", {"ratio": ratio})
    return None
