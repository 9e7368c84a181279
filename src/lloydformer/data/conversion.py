"""From the columns of a table to points.

Words become columns of 0 and 1, texts in other notations become numbers. Missing values
are refused, dropped with their rows, or filled in with the median of the column.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from lloydformer.data.mapped_files import scratch_array
from lloydformer.data.notations import Notation
from lloydformer.data.table import Table, TableBatch, list_names, object_array
from lloydformer.data.table_options import MISSING_VALUES

# Rows that are converted at a time; bounds temporary memory.
ROWS = 1 << 16
# Rows that are reduced as one.
_FOLDED = 64


@dataclass(frozen=True)
class Feature:
    """A column that is used.

    Attributes
    ----------
    column : str
        Its name, or its number (from 1) if it has none.
    categories : tuple of str or None
        Its values, if each becomes a column of 0 and 1.
    fill : float, str, tuple of float or None
        The value that replaces missing ones, if they are filled in; one for each part of a date.
    is_single : bool
        One column of 0 and 1 holds both of its two categories: 1 is the second one.
    notation : Notation or None
        How its texts become numbers; None for plain numbers.
    sentinels : tuple of float
        Numbers that mean a missing value, such as -999.
    """

    column: str
    categories: tuple[str, ...] | None = None
    fill: float | str | tuple[float, ...] | None = None
    is_single: bool = False
    notation: Notation | None = None
    sentinels: tuple[float, ...] = ()

    @property
    def width(self) -> int:
        """Columns of points that it becomes."""
        return len(self.words) or len(self.parts) or 1

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of dates that are its columns."""
        return () if self.notation is None else self.notation.parts

    @property
    def is_text(self) -> bool:
        """True if it is read as texts."""
        return self.categories is not None or self.notation is not None

    @property
    def words(self) -> tuple[str, ...]:
        """The category of each of its columns of 0 and 1; empty for a column of numbers."""
        return (self.categories or ())[1 if self.is_single else 0 :]

    def read_word(self, values: Sequence[float]) -> str:
        """Return the category of its columns of 0 and 1 in a row."""
        assert self.categories is not None
        return self.categories[round(values[0]) if self.is_single else int(np.argmax(values))]


@dataclass(frozen=True)
class Conversion:
    """Conversion of the columns of a table to points.

    Attributes
    ----------
    features : tuple of Feature
        The features in the order of their columns.
    named : bool
        The columns have names.
    na_values : tuple of str
        Texts and numbers that mean a missing value, besides those that always do.
    keeps_sentinels : bool
        Numbers such as -999 are values, however far they are from others.
    decimal, comment : str or None
        The decimal point and the sign of comments, if the user of the fit named them.
    """

    features: tuple[Feature, ...]
    named: bool
    na_values: tuple[str, ...] = ()
    keeps_sentinels: bool = False
    decimal: str | None = None
    comment: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of points: those of the table, city=Rome, or x2 by number."""
        labels: list[str] = []
        for feature in self.features:
            name = feature.column if self.named else f"x{feature.column}"
            coded = [f"{name}={word}" for word in feature.words]
            labels += coded or [f"{name} {part}" for part in feature.parts] or [name]
        return tuple(labels)

    @property
    def opposites(self) -> dict[int, str]:
        """The word coded as 0, by column number, for columns that hold two words."""
        pairs = zip(self.starts, self.features, strict=True)
        return {start: f.categories[0] for start, f in pairs if f.is_single and f.categories}

    @property
    def starts(self) -> list[int]:
        """The first column of points of each feature."""
        starts: list[int] = np.cumsum([0, *(f.width for f in self.features)]).tolist()
        return starts[:-1]

    @property
    def is_plain(self) -> bool:
        """True if columns are used as they are, so that their names say everything."""
        simple = all(replace(f, column="") == _PLAIN for f in self.features)
        simple = simple and replace(self, features=(), named=True) == Conversion((), True)
        numbered = [f.column for f in self.features] == _numbers(len(self.features))
        return simple and (self.named or numbered)

    def fit_to_table(self, table: Table) -> "Conversion":
        """Convert names to numbers or back, if only one of the fit and the table has names.

        Raises `ValueError` if the table has another number of columns than the fit had features.
        """
        if self.named == (table.names is not None):
            return self
        if table.width != len(self.features) and (self.named or self.is_plain):
            raise ValueError(
                f"{table.name}: found {table.width} columns; this model was fitted on "
                f"{len(self.features)}; choose them with --columns"
            )
        if table.names is None:
            columns = _numbers(len(self.features))
        else:
            indices = [int(f.column) - 1 for f in self.features]
            if max(indices) >= table.width:
                raise ValueError(
                    f"{table.name}: found {table.width} columns; this model was fitted on column "
                    f"{max(indices) + 1} too"
                )
            columns = [table.names[i] for i in indices]
        pairs = zip(self.features, columns, strict=True)
        features = tuple(replace(f, column=c) for f, c in pairs)
        return replace(self, features=features, named=table.names is not None)

    def replace_columns(self, table: Table, chosen: Sequence[int]) -> "Conversion":
        """Use these columns of a table in place of those of the fit, in the same order.

        Raises `ValueError` if there are more or fewer than in the fit.
        """
        if len(chosen) != len(self.features):
            used = list_names([f.column for f in self.features], 6)
            raise ValueError(
                f"{table.name}: {table.options.spell('columns')}: found {len(chosen)} columns; "
                f"this model was fitted on {len(self.features)} ({used}); name one for each of them"
            )
        pairs = zip(self.features, chosen, strict=True)
        features = tuple(replace(f, column=table.label(i)) for f, i in pairs)
        return replace(self, features=features, named=table.names is not None)

    def find_columns(self, table: Table) -> tuple[list[int], list[int]]:
        """Return the indices of the columns that are read as numbers, and of those as texts.

        Raises `ValueError` with all columns that the table lacks.
        """
        present = {table.label(i) for i in range(table.width)}
        lacking = [f.column for f in self.features if f.column not in present]
        if lacking:
            are, them = ("are", "them") if len(lacking) > 1 else ("is", "it")
            known = list_names(table.names or [f"1 to {table.width}"])
            raise ValueError(
                f"{table.name}: column{'s' * (len(lacking) > 1)} {list_names(lacking)} {are} "
                f"missing, and the model was fitted on {them}; the columns are {known}"
            )
        pairs = list(zip(table.find([f.column for f in self.features]), self.features, strict=True))
        numbers = [i for i, f in pairs if not f.is_text]
        return numbers, [i for i, f in pairs if f.is_text]

    def to_points(self, batch: TableBatch) -> np.ndarray:
        """Return points (m, d); NaN where a value is missing or a category is not known.

        `batch`: the columns of `find_columns`.
        """
        missing, numbers = MISSING_VALUES.union(self.na_values), self.na_numbers
        if not batch.texts and not numbers and not any(f.sentinels for f in self.features):
            return batch.numbers
        columns, texts = iter(batch.numbers.T), iter(batch.texts)
        found = []
        for f in self.features:
            if f.categories is not None:
                found.append(one_hot(next(texts), f.categories, missing)[:, -f.width :])
                continue
            values = next(columns) if f.notation is None else f.notation.parse(next(texts), missing)
            # Parts of a date are no numbers that a file may have for missing ones.
            if lacking := () if f.parts else (*numbers, *f.sentinels):
                is_missing = np.isin(values, np.array(lacking, dtype=values.dtype))
                values = np.where(is_missing, np.nan, values)
            found.append(values)
        return np.column_stack(found)

    @property
    def na_numbers(self) -> tuple[float, ...]:
        """The numbers among `na_values`."""
        found = []
        for value in self.na_values:
            with suppress(ValueError):
                found.append(float(value))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "named": self.named,
            "na_values": list(self.na_values),
            "keeps_sentinels": self.keeps_sentinels,
            "decimal": self.decimal,
            "comment": self.comment,
            "features": [asdict(f) for f in self.features],
        }

    @classmethod
    def from_json(cls, value: Any) -> "Conversion":
        """Read the JSON object of `to_json`; raises `ValueError` for another one."""
        try:
            features = []
            for stored in value["features"]:
                values, fill = stored["categories"], stored["fill"]
                categories = None if values is None else tuple(map(str, values))
                known: Any = fill
                if isinstance(fill, list):
                    known = tuple(map(float, fill))
                elif not isinstance(fill, str | None):
                    known = float(fill)
                single = bool(stored.get("is_single", False)) and len(categories or ()) == 2
                # Models of 0.2 have no notations.
                notation = Notation.from_json(stored.get("notation"))
                sentinels = tuple(map(float, stored.get("sentinels", ())))
                name = str(stored["column"])
                features.append(Feature(name, categories, known, single, notation, sentinels))
            na_values = tuple(map(str, value.get("na_values", ())))
            keeps = bool(value.get("keeps_sentinels", False))
            signs = [value.get("decimal"), value.get("comment")]
            if not all(
                sign is None or (isinstance(sign, str) and len(sign) == 1) for sign in signs
            ):
                raise ValueError("decimal and comment are single signs")
            return cls(tuple(features), bool(value["named"]), na_values, keeps, *signs)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"found no conversion of columns ({error})") from None


_PLAIN = Feature("")


def _numbers(count: int) -> list[str]:
    """Return the numbers of columns without names, as texts."""
    return [str(i + 1) for i in range(count)]


def to_words(texts: np.ndarray, missing: Set[str] = MISSING_VALUES) -> np.ndarray:
    """Return texts without spaces around them; None where they mean a missing value."""
    words = ["" if text is None else str(text).strip() for text in texts]
    return object_array([None if word in missing else word for word in words])


def one_hot(
    texts: np.ndarray, categories: Sequence[str], missing: Set[str] = MISSING_VALUES
) -> np.ndarray:
    """Return a column of 0 and 1 for each category; NaN for other values."""
    places = {word: i for i, word in enumerate(categories)}
    codes = np.array([places.get(word, -1) for word in to_words(texts, missing)], dtype=np.intp)
    known = codes >= 0
    columns = np.zeros((len(texts), len(categories)))
    columns[known, codes[known]] = 1.0
    columns[~known] = np.nan
    return columns


@dataclass
class MissingValues:
    """Missing values in the rows of one table, counted while the rows pass.

    Attributes
    ----------
    conversion : Conversion
        The features.
    drop : bool
        Leave out rows with a missing value.
    n_rows : int
        Rows so far.
    first : tuple or None
        Row and feature of the first missing value.
    least, largest : ndarray of shape (d,) or None
        The ends of the columns in the rows that stay; NaN if all values are missing.
    infinite : tuple or None
        Row, column and value of the first infinite value in a row that stays.
    dropped : list of ndarray
        Rows that are left out.
    """

    conversion: Conversion
    drop: bool
    n_rows: int = 0
    first: tuple[int, int] | None = None
    least: np.ndarray | None = None
    largest: np.ndarray | None = None
    infinite: tuple[int, int, float] | None = None
    dropped: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        widths = [f.width for f in self.conversion.features]
        self._starts = np.cumsum([0, *widths[:-1]])
        self._counts = np.zeros(len(widths), dtype=np.int64)

    def filter(self, parts: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
        """Count missing values; with `drop`, leave their rows out."""
        for points in parts:
            start = self.n_rows
            self.n_rows += len(points)
            finite = bool(np.isfinite(points).all())
            if not finite:
                # All columns of a missing category are NaN: the first one tells.
                missing = np.isnan(points)[:, self._starts]
                self._counts += missing.sum(axis=0)
                rows = missing.any(axis=1)
                if self.first is None and rows.any():
                    row = int(rows.argmax())
                    self.first = start + row, int(missing[row].argmax())
                # An infinite value in a row that is dropped does no harm.
                kept = ~rows if self.drop else np.ones(len(rows), dtype=bool)
                infinite = np.argwhere(np.isinf(points) & kept[:, None])
                if self.infinite is None and len(infinite):
                    row, column = infinite[0]
                    self.infinite = start + int(row), int(column), float(points[row, column])
                if self.drop:
                    self.dropped.append(start + np.flatnonzero(rows))
                    points = points[kept]
            if len(points):
                self._add_ends(points, finite)
                yield points

    def _add_ends(self, points: np.ndarray, finite: bool) -> None:
        # Of finite rows in the faster way: `fmin` looks for NaN.
        ways = (np.minimum, np.maximum) if finite else (np.fmin, np.fmax)
        low, high = (_reduce_columns(way, points) for way in ways)
        self.least = low if self.least is None else np.fmin(self.least, low)
        self.largest = high if self.largest is None else np.fmax(self.largest, high)

    @property
    def summary(self) -> str:
        """The columns with most missing values, and how many: 'age lacks 2, city lacks 1'."""
        prefix = "" if self.conversion.named else "column "
        pairs = zip(self.conversion.features, self._counts.tolist(), strict=True)
        lacking = sorted(((f.column, n) for f, n in pairs if n), key=lambda pair: -pair[1])
        return ", ".join(f"{prefix}{column} lacks {n:,}" for column, n in lacking[:6])

    def refuse(self, table: Table, known: bool) -> None:
        """Raise `ValueError` at the first infinite value, or else at the first missing one.

        Missing values are refused only if that is the policy of the table. `known`: the categories
        are those of a model, so a word may be unknown to it.
        """
        if self.infinite is not None:
            row, column, value = self.infinite
            label = self.conversion.labels[column]
            name = label if self.conversion.named else label[1:]
            shown = name if self.conversion.named else f"number {name}"
            without = table.options.spell("exclude", (name,))
            raise ValueError(
                f"{table.name}: {table.locate(row)}, column {shown}: found {value}; correct "
                f"infinite values in the file, or leave the column out: {without}"
            )
        if self.first is None or table.options.missing != "error":
            return
        row, column = self.first
        feature = self.conversion.features[column]
        name = feature.column if self.conversion.named else f"number {feature.column}"
        what = "a missing value"
        if known and feature.categories is not None:
            what += f", or one that is not {_list_categories(feature.categories)}"
        if self._counts.sum() > 1:
            what += f" ({self.summary})"
        spell = table.options.spell
        raise ValueError(
            f"{table.name}: {table.locate(row)}, column {name}: found {what}; fill in or drop rows "
            f"with missing values: {spell('missing', 'drop')} or {spell('missing', 'median')}"
        )


def _reduce_columns(way: np.ufunc, points: np.ndarray) -> np.ndarray:
    """Return `way.reduce(points, axis=0)`.

    As a matrix of long rows, which NumPy reduces ten times faster than rows of 20 numbers.
    """
    count = len(points) // _FOLDED
    if count < 2 or not points.flags.c_contiguous:
        return np.asarray(way.reduce(points, axis=0))
    whole = points[: count * _FOLDED].reshape(count, -1)
    folded = way.reduce(whole, axis=0).reshape(_FOLDED, -1)
    return np.asarray(way.reduce(np.concatenate([folded, points[count * _FOLDED :]]), axis=0))


def refuse_unknown_words(table: Table, conversion: Conversion) -> None:
    """Raise `ValueError` at the first word that is neither a category nor missing."""
    coded = [f for f in conversion.features if f.categories is not None]
    columns, n_rows = table.find([f.column for f in coded]), 0
    for batch in table.batches([], columns) if coded else ():
        for feature, texts in zip(coded, batch.texts, strict=True):
            known = feature.categories or ()
            for row, word in enumerate(to_words(texts, table.options.missing_values)):
                if word is not None and word not in known:
                    raise ValueError(
                        f"{table.name}: {table.locate(n_rows + row)}, column {feature.column}: "
                        f"found {word!r}, which the model does not know; it knows "
                        f"{_list_categories(known)}"
                    )
        n_rows += len(batch)


def _list_categories(words: Sequence[str]) -> str:
    return ", ".join(words[:6]) + (" or another known one" if len(words) > 6 else "")


def find_fills(name: str, points: np.ndarray, conversion: Conversion) -> Conversion:
    """Return the conversion with the median of each column, or its most common category.

    One column at a time is copied to memory.
    """
    features: list[Feature] = []
    start = 0
    for feature in conversion.features:
        columns = points[:, start : start + feature.width]
        start += feature.width
        fill: float | str | tuple[float, ...]
        if feature.parts:
            fill = tuple(np.nanmedian(columns, axis=0).tolist())
        elif feature.categories is None:
            present = columns[~np.isnan(columns)]
            if not len(present):
                raise ValueError(
                    f"{name}: column {feature.column} is empty, so it has no median; leave it out"
                )
            fill = float(np.median(present))
        else:
            fill = feature.read_word(np.nanmean(columns, axis=0).tolist())
        features.append(replace(feature, fill=fill))
    return replace(conversion, features=tuple(features))


def fill_missing(points: np.ndarray, conversion: Conversion) -> np.ndarray:
    """Return a copy of the points with the fills in place of NaN. Every feature must have one."""
    parts: list[Any] = [
        [word == f.fill for word in f.words] if f.categories is not None else np.ravel([f.fill])
        for f in conversion.features
    ]
    fills = np.concatenate(parts).astype(points.dtype)
    filled = scratch_array(*points.shape, dtype=points.dtype)
    for start in range(0, len(points), ROWS):
        part = points[start : start + ROWS]
        filled[start : start + ROWS] = np.where(np.isnan(part), fills, part)
    return filled
