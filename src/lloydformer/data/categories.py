"""Tables of numbers and categories as sparse rows: numbers, then one-hot codes of each category.

Rows with codes e_a and e_b in a column are 2 apart in squared distance if a and b differ, so the
number of columns that differ is half of a squared distance. Numbers are scaled so that a column
that differs counts `gamma`. Codes are 0 and 1: sums of them are exact, and so are ties.
"""

import json
import math
import sys
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from lloydformer.data.sparse_blocks import SparseBlocks
from lloydformer.numerics.checks import ArgumentError, refuse_masked

# The word for a missing value among the categories of a column, if missing values are one.
MISSING = None
Name = str | int
Value = str | int | float | bool | None


@dataclass(frozen=True)
class Category:
    """A column of categories: its name (or number, from 0) and its values, in order."""

    name: Name
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Encoding:
    """The conversion of the columns of a table to columns of points.

    Attributes
    ----------
    numbers : tuple of str or int
        The columns of numbers: names, or numbers from 0.
    categories : tuple of Category
        The columns of categories.
    shifts : tuple of float
        Subtracted from each column of numbers: its mean, so that squares do not lose digits.
    gamma : float
        The squared distance of two rows that differ in one column of categories.
    missing : {"error", "category", "ignore"}
        What happens to missing categories.
    """

    numbers: tuple[Name, ...]
    categories: tuple[Category, ...]
    shifts: tuple[float, ...]
    gamma: float
    missing: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each column of categories."""
        return tuple(len(column.values) for column in self.categories)

    @property
    def width(self) -> int:
        """The number of columns of points."""
        return len(self.numbers) + sum(self.sizes)

    @property
    def starts(self) -> np.ndarray:
        """The first column of points of each column of categories."""
        return len(self.numbers) + np.cumsum([0, *self.sizes], dtype=np.int64)[:-1]

    @property
    def factor(self) -> float:
        """The factor of numbers."""
        # Of one code, squared distances are 2, and that is to be gamma.
        return math.sqrt(2 / self.gamma)

    def to_json(self) -> str:
        """Return the encoding as text, which `from_json` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Encoding":
        """Return the encoding of a text; raise `ValueError` for another one."""
        try:
            found = json.loads(text)
            columns = tuple(Category(c["name"], tuple(c["values"])) for c in found["categories"])
            numbers, shifts = tuple(found["numbers"]), tuple(map(float, found["shifts"]))
            known = cls(numbers, columns, shifts, float(found["gamma"]), str(found["missing"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"found categories that cannot be read ({error})") from None
        if len(shifts) != len(numbers) or not known.gamma > 0 or not all(known.sizes):
            raise ValueError("found categories that do not fit together")
        return known

    def read_rows(self, centers: Float[np.ndarray, "k d"]) -> list[dict[Name, Any]]:
        """Return centers as rows of the table: numbers, and the category with the largest code."""
        rows: list[dict[Name, Any]] = []
        starts, n = self.starts, len(self.numbers)
        for center in centers:
            numbers = center[:n] / self.factor + np.array(self.shifts)
            row: dict[Name, Any] = dict(zip(self.numbers, numbers.tolist(), strict=True))
            for start, column in zip(starts, self.categories, strict=True):
                codes = center[start : start + len(column.values)]
                row[column.name] = column.values[int(codes.argmax())]
            rows.append(row)
        return rows


@dataclass(frozen=True)
class EncodedRows:
    """Rows as points.

    Attributes
    ----------
    matrix : csr_matrix of shape (n, d)
        The points.
    unmatched : ndarray of shape (n,)
        What is to be added to the squared distance of a row to every center: 1 for each
        category that is not known, which differs from all, and -1 for each one that is ignored:
        without a code, a row is 1 apart in such a column, and 2 or 0 are wanted.
    """

    matrix: sparse.csr_matrix
    unmatched: Float[np.ndarray, " n"]


@dataclass(frozen=True)
class EncodedBlocks(SparseBlocks):
    """Encoded rows as blocks.

    Parameters
    ----------
    offset : float
        The sum of w times `EncodedRows.unmatched`, in units of the weights.
    """

    offset: float = 0.0


class Columns:
    """The columns of a data frame or a matrix by name, or by number from 0.

    Parameters
    ----------
    X : data frame, array-like of shape (n, d) or mapping
        The table.
    """

    def __init__(self, X: Any) -> None:
        refuse_masked("X", X)
        if sparse.issparse(X):
            raise ValueError("X: found a sparse matrix; pass a data frame or an array")
        self._frame = X if hasattr(X, "columns") and hasattr(X, "__getitem__") else None
        if self._frame is not None:
            self.names: list[Name] = list(getattr(X, "column_names", X.columns))
            self.n_rows = len(X)
        else:
            array = X if isinstance(X, np.ndarray) else _as_array(X)
            if array.ndim != 2 or 0 in array.shape:
                raise ValueError(
                    f"X: found an array of shape {array.shape}; pass rows and columns, (n, d)"
                )
            self._array = array
            self.names, self.n_rows = list(range(array.shape[1])), len(array)
        if self.n_rows == 0 or not self.names:
            raise ValueError(f"X: found {self.n_rows} rows of {len(self.names)} columns; pass some")
        if len(set(self.names)) < len(self.names):
            raise ValueError("X: found two columns of one name; rename one of them")
        self.named = self._frame is not None and all(isinstance(n, str) for n in self.names)

    def raw(self, name: Name) -> Any:
        """Return a column as the table has it."""
        return self._array[:, int(name)] if self._frame is None else self._frame[name]

    def is_category(self, name: Name) -> bool:
        """Return True for words, bools and the categorical type of pandas."""
        column = self.raw(name)
        dtype = getattr(column, "dtype", None)
        kind = getattr(dtype, "kind", "O")
        if str(dtype).lower() in ("category", "categorical", "string", "str", "enum", "boolean"):
            return True
        if kind == "O":  # of numbers too, in an array that also has words
            return any(isinstance(v, str | bool | np.bool_) for v in np.asarray(column, object))
        return kind in "bUST"

    def choose(self, categories: Any) -> list[Name]:
        """Return the columns of categories, in the order of the table.

        categories: None for those that `is_category` finds, names or numbers, or a callable that
        gets the table, such as `sklearn.compose.make_column_selector(...)`.
        """
        if categories is None:
            return [name for name in self.names if self.is_category(name)]
        if callable(categories):
            categories = categories(self._array if self._frame is None else self._frame)
        if isinstance(categories, str | int):
            categories = [categories]
        chosen = set()
        for given in categories:
            place = given.item() if isinstance(given, np.generic) else given
            if place not in self.names and isinstance(place, int) and 0 <= place < len(self.names):
                place = self.names[place]  # a column of a frame by its number
            if isinstance(place, bool) or place not in self.names:
                shown = ", ".join(map(repr, self.names[:8]))
                raise ArgumentError("categories", f"found {given!r}; the columns of X are {shown}")
            chosen.add(place)
        return [name for name in self.names if name in chosen]

    def numbers(self, name: Name) -> Float[np.ndarray, " n"]:
        """Return a column of numbers; raise `ValueError` for words and missing values."""
        column = np.asarray(self.raw(name))
        try:
            if column.dtype.kind not in "biufO":
                raise ValueError(f"dtype {column.dtype}")
            values = column.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                "X", f"column {name!r} holds no numbers ({error}); name it in categories"
            ) from None
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ArgumentError(
                "X",
                f"found {values[row]} in row {row}, column {name!r}; fill in or remove such rows",
            )
        return values

    def codes(self, name: Name) -> tuple[Int[np.ndarray, " n"], list[Value]]:
        """Return a column of categories as codes, -1 where it is missing, and their values."""
        column = self.raw(name)
        if hasattr(column, "cat") and hasattr(column.cat, "categories"):  # of pandas
            codes, values = np.asarray(column.cat.codes), list(column.cat.categories)
        elif (pandas := sys.modules.get("pandas")) is not None:
            array = np.asarray(column, object) if self._frame is not None else column
            codes, found = pandas.factorize(array)  # by a hash, where NumPy sorts
            values = list(found)
        else:
            array = np.asarray(column, object)
            known = {value: code for code, value in enumerate(dict.fromkeys(array))}
            values = [value for value in known if not _is_missing(value)]
            places = {value: code for code, value in enumerate(values)}
            codes = np.array([places.get(value, -1) for value in array])
        return codes.astype(np.int64), [_plain(name, value) for value in values]


def fit_encoding(columns: Columns, categories: Any, gamma: float | None, missing: str) -> Encoding:
    """Return the encoding of a table.

    gamma: None for half the mean standard deviation of the columns of numbers, as in the package
    kmodes; 1 without such columns.
    """
    chosen = columns.choose(categories)
    numbers = [name for name in columns.names if name not in set(chosen)]
    values = [columns.numbers(name) for name in numbers]
    if gamma is None:
        spread = float(np.mean([np.std(column) for column in values])) if values else 2.0
        gamma = 0.5 * spread if spread > 0 else 1.0
    found = []
    for name in chosen:
        codes, words = columns.codes(name)
        lacking = np.flatnonzero(codes < 0)
        if len(lacking) and missing == "error":
            raise ArgumentError(
                "X",
                f"found a missing value in row {lacking[0]}, column {name!r}; pass "
                'missing="ignore" or missing="category"',
            )
        seen = np.unique(codes[codes >= 0]).tolist()
        # In the order of the table's categories, or sorted: it decides between equal counts.
        used = [words[code] for code in seen]
        if not hasattr(columns.raw(name), "cat"):
            used.sort(key=lambda word: (type(word).__name__, word))
        if len(lacking) and missing == "category":
            used.append(MISSING)
        if not used:
            raise ArgumentError("X", f"column {name!r} has no value; leave it out")
        found.append(Category(name, tuple(used)))
    shifts = tuple(float(column.mean()) for column in values)
    return Encoding(tuple(numbers), tuple(found), shifts, float(gamma), missing)


def encode(columns: Columns, encoding: Encoding, *, fitting: bool = False) -> EncodedRows:
    """Return the rows of a table as points.

    A category that the encoding does not know differs from all; so does a missing one, if missing
    values are an error or a category that the fit did not see.
    """
    n, n_numbers = columns.n_rows, len(encoding.numbers)
    lacks = [
        c
        for c in (*encoding.numbers, *(c.name for c in encoding.categories))
        if c not in columns.names
    ]
    if lacks:
        raise ArgumentError("X", f"lacks the columns {', '.join(map(repr, lacks))} of the fit")
    places, values = [], []
    for shift, name in zip(encoding.shifts, encoding.numbers, strict=True):
        values.append((columns.numbers(name) - shift) * encoding.factor)
    unmatched = np.zeros(n)
    for start, column in zip(encoding.starts, encoding.categories, strict=True):
        codes, words = columns.codes(column.name)
        known = {word: place for place, word in enumerate(column.values)}
        here = np.array([known.get(word, -1) for word in words] + [known.get(MISSING, -1)])
        found = here[codes]  # code -1, a missing value, is the last one
        ignored = (codes < 0) & (encoding.missing == "ignore")
        if encoding.missing == "error" and (codes < 0).any():
            row = int(np.flatnonzero(codes < 0)[0])
            raise ArgumentError(
                "X",
                f"found a missing value in row {row}, column {column.name!r}; this model was "
                'fitted with missing="error"',
            )
        unmatched += np.where(ignored, -1.0, np.where(found < 0, 1.0, 0.0))
        places.append(np.where(found < 0, -1, found + start))
    numbers = np.array(values).T.reshape(n, n_numbers)
    codes = np.array(places, dtype=np.int64).T.reshape(n, len(places))
    there = np.concatenate([np.ones((n, n_numbers), bool), codes >= 0], axis=1)
    features = np.concatenate([np.tile(np.arange(n_numbers), (n, 1)), codes], axis=1)
    entries = np.concatenate([numbers, np.ones((n, len(places)))], axis=1)
    ends = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    matrix = sparse.csr_matrix((entries[there], features[there], ends), shape=(n, encoding.width))
    return EncodedRows(matrix, unmatched)


def complete_codes(
    centers: Float[np.ndarray, "k d"], encoded: sparse.csr_matrix, encoding: Encoding
) -> Float[np.ndarray, "k d"]:
    """Return centers in which each missing or unknown category is the most common one.

    A center without a code would be nearer to all rows than any category.
    """
    shares, found = np.asarray(encoded.sum(axis=0)).ravel(), centers.copy()
    for start, size in zip(encoding.starts, encoding.sizes, strict=True):
        block = found[:, start : start + size]
        block[block.sum(axis=1) == 0, shares[start : start + size].argmax()] = 1.0
    return found


def huang_start(
    encoded: sparse.csr_matrix, encoding: Encoding, k: int, rng: np.random.RandomState
) -> Float[np.ndarray, "k d"]:
    """Return Huang's start: values drawn by their frequencies, then the most similar rows.

    Numbers are drawn from a normal distribution with the mean and the deviation of their column,
    as in the package kmodes.
    """
    n_numbers, n = len(encoding.numbers), encoded.shape[0]
    shares = np.asarray(encoded.sum(axis=0)).ravel()
    codes = encoded[:, n_numbers:]
    taken, centers = set[int](), np.zeros((k, encoding.width))
    for j in range(k):
        drawn = np.zeros(encoding.width)
        for start, size in zip(encoding.starts, encoding.sizes, strict=True):
            counts = shares[start : start + size]
            drawn[start + rng.choice(size, p=counts / counts.sum())] = 1.0
        alike = codes @ drawn[n_numbers:]
        order = np.argsort(-alike, kind="stable")
        row = next((int(i) for i in order[: len(taken) + 1] if int(i) not in taken), 0)
        taken.add(row)
        centers[j] = encoded[row].toarray()[0]
    if n_numbers:
        numbers = encoded[:, :n_numbers].toarray()
        deviations = numbers.std(axis=0) if n > 1 else 0.0
        drawn_numbers = rng.standard_normal((k, n_numbers)) * deviations
        centers[:, :n_numbers] = numbers.mean(axis=0) + drawn_numbers
    return centers


def cao_start(encoded: sparse.csr_matrix, encoding: Encoding, k: int) -> Float[np.ndarray, "k d"]:
    """Return Cao's start: dense rows far from each other; nothing is drawn.

    The density of a row is the mean share of rows that have its values. The next row has the
    largest product of density and number of differences to the nearest center so far.
    """
    n_numbers, n = len(encoding.numbers), encoded.shape[0]
    codes = encoded[:, n_numbers:]
    shares = np.asarray(codes.sum(axis=0)).ravel() / n
    n_columns = max(1, len(encoding.categories))
    density = codes @ shares / n_columns
    chosen = [int(density.argmax())]
    least = np.full(n, np.inf)
    for _ in range(k - 1):
        alike = np.asarray((codes @ codes[chosen[-1]].T).todense()).ravel()
        least = np.minimum(least, n_columns - alike)
        chosen.append(int((least * density).argmax()))
    return np.asarray(encoded[chosen].toarray())


def _as_array(X: Any) -> np.ndarray:
    """Return rows as an array; of mixed values an array of objects."""
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise ValueError(f"X: found rows of different lengths ({error})") from None
    # NumPy makes texts of numbers beside words.
    return np.asarray(X, object) if array.dtype.kind in "US" else array


def _is_missing(value: Any) -> bool:
    # NaN, NaT and pandas' NA do not equal themselves; NA has no truth value either.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _plain(name: Name, value: Any) -> Value:
    """Return a value as one of Python, so that it can be written to a file."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ArgumentError(
        "X",
        f"found {value!r} in column {name!r}; pass categories as texts, bools or whole numbers",
    )
