"""From the columns of a table to points: which are used, and how words become numbers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lloydformer.data.columns import ColumnFinder, shortened
from lloydformer.data.csv_values import MISSING_VALUES
from lloydformer.data.table_source import TableBatch, TableSource


@dataclass(frozen=True)
class Feature:
    """A column that is used: by its name, or by its number (from 1) if it has none.

    `categories`: its values, if each becomes a column of 0 and 1. `fill`: what stands for a missing
    value, if those are filled in.
    """

    column: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None


@dataclass(frozen=True)
class Conversion:
    """The features in the order of their columns, and whether they have names."""

    features: tuple[Feature, ...]
    named: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of points: those of the table, city=Rome, or x2 by number."""
        found: list[str] = []
        for feature in self.features:
            name = feature.column if self.named else f"x{feature.column}"
            values = feature.categories
            found += [name] if values is None else [f"{name}={value}" for value in values]
        return tuple(found)

    @property
    def plain(self) -> bool:
        """Whether columns are used as they are, so that their names say everything."""
        simple = all(f.categories is None and f.fill is None for f in self.features)
        counted = [f.column for f in self.features] == [
            str(i + 1) for i in range(len(self.features))
        ]
        return simple and (self.named or counted)

    def for_table(self, source: TableSource) -> "Conversion":
        """The same conversion by numbers, if only one of the fit and the table has names.

        Raises ValueError if the table has another number of columns than the fit had features.
        """
        if self.named == (source.names is not None):
            return self
        if source.width != len(self.features) and (self.named or self.plain):
            raise ValueError(
                f"{source.name}: found {source.width} columns; this model was fitted on "
                f"{len(self.features)}; choose them with --columns"
            )
        numbers = [str(i + 1) for i in range(len(self.features))]
        if self.named:
            pairs = zip(self.features, numbers, strict=True)
            return Conversion(tuple(replace(f, column=n) for f, n in pairs), named=False)
        if (last := max(int(f.column) for f in self.features)) > source.width:
            raise ValueError(f"{source.name}: found {source.width} columns; this model was fitted "
                             f"on column {last} too")  # fmt: skip
        names = source.names or ()
        return Conversion(
            tuple(replace(f, column=names[int(f.column) - 1]) for f in self.features), named=True
        )

    def indices(self, source: TableSource) -> "ChosenColumns":
        """Where the features are in a table; raises ValueError with all columns it lacks."""
        there = set(source.names or map(str, range(1, source.width + 1)))
        lacking = [f.column for f in self.features if f.column not in there]
        if lacking:
            many = len(lacking) > 1
            raise ValueError(
                f"{source.name}: column{'s' * many} {shortened(lacking)} "
                f"{'are' if many else 'is'} missing, and the model was fitted on "
                f"{'them' if many else 'it'}; the columns are "
                f"{shortened(source.names or ['1 to ' + str(source.width)])}"
            )
        found = ColumnFinder(source.name, source.names, source.width).indices(
            [f.column for f in self.features]
        )
        pairs = list(zip(found, self.features, strict=True))
        return ChosenColumns(
            tuple(i for i, f in pairs if f.categories is None),
            tuple(i for i, f in pairs if f.categories is not None),
        )

    def points(self, batch: TableBatch) -> np.ndarray:
        """Rows of points (m, d); NaN where a value is missing or a category is not known.

        `batch`: the numbers and the texts of `indices`.
        """
        if all(f.categories is None for f in self.features):
            return batch.numbers
        number, text, parts = 0, 0, []
        for feature in self.features:
            if feature.categories is None:
                parts.append(batch.numbers[:, number : number + 1])
                number += 1
            else:
                parts.append(one_hot(batch.texts[text], feature.categories))
                text += 1
        return np.hstack(parts)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"named": self.named, "features": [asdict(f) for f in self.features]}

    @classmethod
    def from_json(cls, value: Any) -> "Conversion":
        """From the JSON object of `to_json`; raises ValueError for another one."""
        try:
            features = [
                Feature(str(f["column"]),
                        None if f["categories"] is None else tuple(map(str, f["categories"])),
                        f["fill"] if isinstance(f["fill"], str | None) else float(f["fill"]))
                for f in value["features"]
            ]  # fmt: skip
            return cls(tuple(features), bool(value["named"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"found no conversion of columns ({error})") from None


@dataclass(frozen=True)
class ChosenColumns:
    """Indices of the columns that are read as numbers, and of those that are read as texts."""

    numbers: tuple[int, ...]
    texts: tuple[int, ...]


def words_of(texts: np.ndarray) -> np.ndarray:
    """Texts without spaces around them; None where they mean a missing value."""
    found = np.empty(len(texts), dtype=object)
    for i, text in enumerate(texts):
        word = None if text is None else str(text).strip()
        found[i] = None if word is None or word in MISSING_VALUES else word
    return found


def one_hot(texts: np.ndarray, categories: Sequence[str]) -> np.ndarray:
    """A column of 0 and 1 for each category; NaN for what is none of them."""
    places = {word: i for i, word in enumerate(categories)}
    codes = np.array([places.get(word, -1) for word in words_of(texts)], dtype=np.intp)
    found = np.zeros((len(texts), len(categories)))
    known = codes >= 0
    found[known, codes[known]] = 1.0
    found[~known] = np.nan
    return found
