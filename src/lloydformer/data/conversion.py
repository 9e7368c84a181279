"""From the columns of a table to points: which columns are used, and how.

Columns are chosen by the user's options and by what they hold. Words become columns of 0 and 1.
Missing values are refused, dropped with their rows, or filled in with the median of the column.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from lloydformer.data.csv_format import MISSING_VALUES
from lloydformer.data.mapped_files import scratch_array
from lloydformer.data.table import Table, TableBatch, list_names, object_array

# Rows that are converted at a time; bounds temporary memory.
ROWS = 1 << 16
# The most values of a column that become columns of their own. A column with more is likely one of
# names or free text, and would outweigh all others in a distance.
_CATEGORIES = 100
# Rows that tell numbers from words; the others are checked as they are read, which is much faster
# than a survey in Python.
_SURVEYED = 1000


@dataclass(frozen=True)
class Feature:
    """A column that is used.

    Attributes
    ----------
    column : str
        Its name, or its number (from 1) if it has none.
    categories : tuple of str or None
        Its values, if each becomes a column of 0 and 1.
    fill : float, str or None
        The value that replaces missing ones, if they are filled in.
    is_single : bool
        One column of 0 and 1 holds both of its two categories: 1 is the second one.
    """

    column: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    is_single: bool = False

    @property
    def width(self) -> int:
        """Columns of points that it becomes."""
        return len(self.words) or 1

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
    """The features in the order of their columns; `named`: the columns have names."""

    features: tuple[Feature, ...]
    named: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of points: those of the table, city=Rome, or x2 by number."""
        labels: list[str] = []
        for feature in self.features:
            name = feature.column if self.named else f"x{feature.column}"
            labels += [f"{name}={word}" for word in feature.words] or [name]
        return tuple(labels)

    @property
    def opposites(self) -> dict[int, str]:
        """The word coded as 0, by column number, for columns that hold two words."""
        starts = np.cumsum([0, *(feature.width for feature in self.features)]).tolist()
        pairs = zip(starts, self.features, strict=False)
        return {start: f.categories[0] for start, f in pairs if f.is_single and f.categories}

    @property
    def is_plain(self) -> bool:
        """True if columns are used as they are, so that their names say everything."""
        simple = all(f.categories is None and f.fill is None for f in self.features)
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
        return Conversion(tuple(replace(f, column=c) for f, c in pairs), table.names is not None)

    def find_columns(self, table: Table) -> tuple[list[int], list[int]]:
        """Return the indices of the columns that are read as numbers, and of those as texts.

        Raises `ValueError` with all columns that the table lacks.
        """
        present = set(table.names or _numbers(table.width))
        lacking = [f.column for f in self.features if f.column not in present]
        if lacking:
            are, them = ("are", "them") if len(lacking) > 1 else ("is", "it")
            known = list_names(table.names or [f"1 to {table.width}"])
            raise ValueError(
                f"{table.name}: column{'s' * (len(lacking) > 1)} {list_names(lacking)} {are} "
                f"missing, and the model was fitted on {them}; the columns are {known}"
            )
        pairs = list(zip(table.find([f.column for f in self.features]), self.features, strict=True))
        numbers = [i for i, f in pairs if f.categories is None]
        return numbers, [i for i, f in pairs if f.categories is not None]

    def to_points(self, batch: TableBatch) -> np.ndarray:
        """Return points (m, d); NaN where a value is missing or a category is not known.

        `batch`: the columns of `find_columns`.
        """
        if not batch.texts:
            return batch.numbers
        numbers, texts = iter(batch.numbers.T), iter(batch.texts)
        return np.column_stack(
            [
                next(numbers)
                if f.categories is None
                else one_hot(next(texts), f.categories)[:, -f.width :]
                for f in self.features
            ]
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {"named": self.named, "features": [asdict(f) for f in self.features]}

    @classmethod
    def from_json(cls, value: Any) -> "Conversion":
        """Read the JSON object of `to_json`; raises `ValueError` for another one."""
        try:
            features = []
            for stored in value["features"]:
                values, fill = stored["categories"], stored["fill"]
                categories = None if values is None else tuple(map(str, values))
                known = fill if isinstance(fill, str | None) else float(fill)
                single = bool(stored.get("is_single", False)) and len(categories or ()) == 2
                features.append(Feature(str(stored["column"]), categories, known, single))
            return cls(tuple(features), bool(value["named"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"found no conversion of columns ({error})") from None


def _numbers(count: int) -> list[str]:
    """Return the numbers of columns without names, as texts."""
    return [str(i + 1) for i in range(count)]


def to_words(texts: np.ndarray) -> np.ndarray:
    """Return texts without spaces around them; None where they mean a missing value."""
    words = ["" if text is None else str(text).strip() for text in texts]
    return object_array([None if word in MISSING_VALUES else word for word in words])


def one_hot(texts: np.ndarray, categories: Sequence[str]) -> np.ndarray:
    """Return a column of 0 and 1 for each category; NaN for other values."""
    places = {word: i for i, word in enumerate(categories)}
    codes = np.array([places.get(word, -1) for word in to_words(texts)], dtype=np.intp)
    known = codes >= 0
    columns = np.zeros((len(texts), len(categories)))
    columns[known, codes[known]] = 1.0
    columns[~known] = np.nan
    return columns


def choose_columns(table: Table) -> tuple[Conversion, list[str]]:
    """Choose the columns by the options of a table; returns notes about those left out.

    Raises `ValueError` for columns that are not there, and if none is left.
    """
    wanted, notes = _wanted_columns(table)
    coded = table.find(table.options.one_hot)
    table.refuse_duplicates(coded)
    if table.options.numeric_only:
        survey = table.survey(_SURVEYED)
        likely = [i for i in wanted if survey[i].is_numeric]
        if any(c.numbers + c.n_words + c.missing >= _SURVEYED for c in survey):
            try:  # reading the rest as numbers is much faster than a survey of all rows
                deque(table.batches(likely, []), maxlen=0)
            except ValueError:
                survey = table.survey()
        others = [i for i in wanted if not survey[i].is_numeric and i not in coded]
        wanted = [i for i in wanted if survey[i].is_numeric or i in coded]
        if others:
            listed = ", ".join(table.label(i) + survey[i].explain() for i in others)
            notes.append(f"not numeric and left out: {listed}")
    _check_choice(table, wanted)
    found = {i: set[str]() for i in coded}
    for batch in table.batches([], coded) if coded else ():
        for words, texts in zip(found.values(), batch.texts, strict=True):
            words.update(word for word in to_words(texts) if word is not None)
    for i, words in found.items():
        if not 0 < len(words) <= _CATEGORIES:
            label, options = table.label(i), table.options
            raise ValueError(
                f"{table.name}: column {label} has {len(words):,} different values, and "
                f"{options.spell('one_hot')} takes 1 to {_CATEGORIES}; use "
                f"{options.spell('exclude', (label,))}"
            )
    # In alphabetical order: the order of rows must not change the columns of a model.
    categories = {i: tuple(sorted(words)) for i, words in found.items()}
    # The second of two columns would be 1 less the first, and count it twice.
    features = [
        Feature(table.label(i), categories.get(i), is_single=len(categories.get(i, ())) == 2)
        for i in wanted
    ]
    return Conversion(tuple(features), table.names is not None), notes


def choose_by_name(table: Table) -> list[int]:
    """Choose columns without a look at the rows; raises `ValueError` as `choose_columns` does."""
    wanted, _ = _wanted_columns(table)
    _check_choice(table, wanted)
    return wanted


def _wanted_columns(table: Table) -> tuple[list[int], list[str]]:
    """Return the columns that the options leave, in the order of the options, and notes."""
    options = table.options
    left_out = set(table.find(options.exclude))
    if options.id_column is not None:
        left_out |= set(table.find([options.id_column]))
    if options.columns:
        chosen = table.find(options.columns)
        chosen += [i for i in table.find(options.one_hot) if i not in chosen]
        if both := [table.label(i) for i in chosen if i in left_out]:
            raise ValueError(f"{table.name}: column {both[0]} is chosen and left out; name it once")
        return chosen, []
    index = table.index_columns
    kept = [i for i in range(table.width) if i not in left_out and table.show(i) not in index]
    # Spreadsheets write columns without a name and without a value: leave them out.
    unnamed = [i for i in kept if table.names is not None and not table.names[i]]
    survey = table.survey() if unnamed else []
    blank = [i for i in unnamed if survey[i].is_empty]
    if not blank:
        return kept, []
    numbers = ", ".join(str(i + 1) for i in blank)
    return [i for i in kept if i not in blank], [
        f"column{'s' * (len(blank) > 1)} {numbers} without a name and without values left out"
    ]


def _check_choice(table: Table, wanted: Sequence[int]) -> None:
    """Raise `ValueError` for a column without a name, one that is there twice, and for none."""
    names = table.names or ("",)
    if names[0] and not any(names[1:]) and len(names) > 1:
        raise ValueError(
            f"{table.name}: only one column has a name ({names[0]}); is this line a title? "
            "Remove it"
        )
    for i in wanted:
        if table.names is not None and not table.names[i]:
            repair = table.options.spell("exclude", (str(i + 1),))
            raise ValueError(
                f"{table.name}: column {i + 1} has no name (are these row numbers?); name it, or "
                f"choose the other columns with {repair}"
            )
    table.refuse_duplicates(wanted)
    if not wanted:
        raise ValueError(f"{table.name}: no column is left; choose columns of numbers")


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
    infinite : tuple or None
        Row, column and value of the first infinite value in a row that stays.
    dropped : list of ndarray
        Rows that are left out.
    """

    conversion: Conversion
    drop: bool
    n_rows: int = 0
    first: tuple[int, int] | None = None
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
            if not np.isfinite(points).all():
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
                yield points

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


def refuse_unknown_words(table: Table, conversion: Conversion) -> None:
    """Raise `ValueError` at the first word that is neither a category nor missing."""
    coded = [f for f in conversion.features if f.categories is not None]
    n_rows = 0
    for batch in table.batches([], conversion.find_columns(table)[1]) if coded else ():
        for feature, texts in zip(coded, batch.texts, strict=True):
            known = feature.categories or ()
            for row, word in enumerate(to_words(texts)):
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
        fill: float | str
        if feature.categories is None:
            present = columns[~np.isnan(columns)]
            if not len(present):
                raise ValueError(
                    f"{name}: column {feature.column} is empty, so it has no median; leave it out"
                )
            fill = float(np.median(present))
        else:
            fill = feature.read_word(np.nanmean(columns, axis=0).tolist())
        features.append(replace(feature, fill=fill))
    return Conversion(tuple(features), conversion.named)


def fill_missing(points: np.ndarray, conversion: Conversion) -> np.ndarray:
    """Return a copy of the points with the fills in place of NaN. Every feature must have one."""
    parts: list[Any] = [
        [f.fill] if f.categories is None else [word == f.fill for word in f.words]
        for f in conversion.features
    ]
    fills = np.concatenate(parts).astype(points.dtype)
    filled = scratch_array(*points.shape, dtype=points.dtype)
    for start in range(0, len(points), ROWS):
        part = points[start : start + ROWS]
        filled[start : start + ROWS] = np.where(np.isnan(part), fills, part)
    return filled
