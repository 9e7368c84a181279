"""How the columns of a table became the features of a model, kept beside the model."""

import json
from dataclasses import dataclass
from pathlib import Path

from lloydformer.data.conversion import Conversion, Feature
from lloydformer.data.opened import OpenedTable
from lloydformer.data.table_options import MISSING
from lloydformer.estimators.base import Clusterer
from lloydformer.storage.bounded_read import read_json

COLUMNS = "columns.json"
_FORMAT = 1


@dataclass(frozen=True)
class ModelColumns:
    """The conversion of a fit, and what it did with missing values."""

    conversion: Conversion
    missing: str = "error"


def write_columns(folder: Path, table: OpenedTable, missing: str) -> None:
    """Write columns.json, unless the names of the columns say everything."""
    if table.conversion.plain and missing == "error":
        return
    content = {"format": _FORMAT, "missing": missing, **table.conversion.to_json()}
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    (folder / COLUMNS).write_text(text, encoding="utf-8")


def read_columns(folder: Path, model: Clusterer) -> ModelColumns:
    """Read columns.json of a model's folder; without it, the columns are the model's features.

    Raises ValueError if it is damaged.
    """
    path = folder / COLUMNS
    if not path.exists():
        names = getattr(model, "feature_names_in_", None)
        columns = map(str, range(1, model.n_features_in_ + 1)) if names is None else map(str, names)
        return ModelColumns(Conversion(tuple(map(Feature, columns)), names is not None))
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ValueError(f"{path}: is not a file of this version of lloydformer; fit again")
    try:
        found = Conversion.from_json(content)
    except ValueError as error:
        raise ValueError(f"{path}: is damaged ({error}); fit again") from None
    missing = content.get("missing")
    if missing not in MISSING or len(found.labels) != model.n_features_in_:
        raise ValueError(f"{path}: does not belong to this model; fit again")
    return ModelColumns(found, str(missing))
