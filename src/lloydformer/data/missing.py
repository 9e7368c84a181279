"""Missing values: refused, their rows dropped, or filled in with the median of the column."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lloydformer.data.conversion import Conversion, Feature, words_of
from lloydformer.data.table_options import TableOptions
from lloydformer.data.table_source import TableSource


@dataclass
class MissingValues:
    """What is missing in the rows of one table, counted while they pass.

    Parameters
    ----------
    conversion : Conversion
        What the points are made of.
    drop : bool
        Whether rows with a missing value are left out.
    """

    conversion: Conversion
    drop: bool
    n_rows: int = 0
    first: tuple[int, int] | None = None
    """Row and feature of the first missing value."""
    infinite: tuple[int, int, float] | None = None
    """Row, column and value of the first infinite value that is not dropped."""
    dropped: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        widths = [1 if f.categories is None else len(f.categories)
                  for f in self.conversion.features]  # fmt: skip
        self._starts = np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(int)
        self.counts = np.zeros(len(widths), dtype=np.int64)

    def passing(self, parts: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """Count missing values; with `drop`, leave their rows out."""
        for points in parts:
            kept = points if np.isfinite(points).all() else self._noted(points)
            self.n_rows += len(points)
            if len(kept):
                yield kept

    def _noted(self, points: np.ndarray) -> np.ndarray:
        by_feature = np.isnan(points)[:, self._starts]
        self.counts += by_feature.sum(axis=0)
        rows = by_feature.any(axis=1)
        endless = np.argwhere(np.isinf(points) & ~(rows[:, None] & self.drop))
        if self.infinite is None and len(endless):
            row, column = endless[0]
            self.infinite = self.n_rows + int(row), int(column), float(points[row, column])
        if self.first is None and rows.any():
            row = int(rows.argmax())
            self.first = self.n_rows + row, int(by_feature[row].argmax())
        if not self.drop:
            return points
        self.dropped.append(self.n_rows + np.flatnonzero(rows))
        return points[~rows]

    @property
    def lacking(self) -> list[tuple[str, int]]:
        """Columns with missing values, and how many, most first."""
        word = "" if self.conversion.named else "column "
        pairs = zip(self.conversion.features, self.counts, strict=True)
        named = [(f"{word}{f.column}", int(n)) for f, n in pairs if n]
        return sorted(named, key=lambda pair: -pair[1])


def refuse_missing(
    source: TableSource, found: MissingValues, options: TableOptions, known: bool
) -> None:
    """Raise ValueError at the first missing value; `known`: the categories are those of a model."""
    if found.first is None:
        return
    row, column = found.first
    feature = found.conversion.features[column]
    name = feature.column if found.conversion.named else f"number {feature.column}"
    what = "a missing value"
    if known and feature.categories is not None:
        what += f", or one that is not {_either(feature.categories)}"
    more = ""
    if sum(found.counts) > 1:
        more = f" ({', '.join(f'{c} lacks {n:,}' for c, n in found.lacking[:6])})"
    help = "fill in or drop rows with missing values: "
    ways = [options.spelled("missing", "drop"), options.spelled("missing", "median")]
    raise ValueError(f"{source.name}: {source.place(row)}, column {name}: found {what}{more}; "
                     f"{help}{' or '.join(ways)}")  # fmt: skip


def refuse_unknown(source: TableSource, conversion: Conversion) -> None:
    """Raise ValueError at the first word that is no category: it is not missing, but unknown."""
    coded = [f for f in conversion.features if f.categories is not None]
    rows = 0
    for batch in source.batches([], conversion.indices(source).texts) if coded else ():
        for feature, texts in zip(coded, batch.texts, strict=True):
            known = feature.categories or ()
            for row, word in enumerate(words_of(texts)):
                if word is not None and word not in known:
                    place = f"{source.place(rows + row)}, column {feature.column}"
                    raise ValueError(f"{source.name}: {place}: found {word!r}, which the model "
                                     f"does not know; it knows {_either(known)}")  # fmt: skip
        rows += len(batch)


def _either(words: Sequence[str]) -> str:
    return ", ".join(words[:6]) + (" or another known one" if len(words) > 6 else "")


def with_fills(name: str, points: np.ndarray, conversion: Conversion) -> Conversion:
    """The conversion with the median of each column, or its most common category.

    One column at a time is copied to memory.
    """
    filled: list[Feature] = []
    start = 0
    for feature in conversion.features:
        if feature.categories is None:
            column = np.asarray(points[:, start])
            column = column[~np.isnan(column)]
            if not len(column):
                raise ValueError(f"{name}: column {feature.column} is empty, so it has no median; "
                                 "leave it out")  # fmt: skip
            filled.append(replace(feature, fill=float(np.median(column))))
            start += 1
        else:
            width = len(feature.categories)
            sums = np.nansum(points[:, start : start + width], axis=0)
            filled.append(replace(feature, fill=feature.categories[int(sums.argmax())]))
            start += width
    return Conversion(tuple(filled), conversion.named)


def fill(points: np.ndarray, conversion: Conversion) -> None:
    """Write what stands for missing values into the points, in blocks."""
    row: list[float] = []
    for feature in conversion.features:
        if feature.categories is None:
            assert isinstance(feature.fill, float)
            row.append(feature.fill)
        else:
            row += [float(value == feature.fill) for value in feature.categories]
    values = np.array(row, dtype=points.dtype)
    for start in range(0, len(points), 1 << 16):
        part = points[start : start + (1 << 16)]
        gone = np.isnan(part)
        if gone.any():
            part[gone] = np.broadcast_to(values, part.shape)[gone]
