"""Saved models, and data opened as a model knows them: its columns, in its order."""

from pathlib import Path

from lloydformer import data
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_names import column_names
from lloydformer.estimators.base import Clusterer


def saved_model(path: Path) -> Clusterer:
    """The model in a folder, or in the folder that a fit has left."""
    inner = path / "model"
    model = Clusterer.from_pretrained(inner if inner.is_dir() else path)
    if not hasattr(model, "cluster_centers_"):
        raise ValueError(f"{path}: this model is not fitted; fit it, and save it again")
    return model


def opened_for(
    model: Clusterer, source: str, columns: tuple[str, ...] | None = None
) -> TensorBlocks:
    """The data, with the columns that the model was fitted on."""
    blocks = data.open(source, columns=columns or columns_for(model, source))
    if blocks.n_features != model.n_features_in_:
        raise ValueError(
            f"{source}: found {blocks.n_features} columns; this model was fitted on "
            f"{model.n_features_in_}; choose them with --columns"
        )
    return blocks


def columns_for(model: Clusterer, source: str) -> tuple[str, ...] | None:
    """The model's columns, where model and data have names; else None, for all as they stand."""
    fitted = getattr(model, "feature_names_in_", None)
    names = column_names(Path(source))
    if fitted is None or names is None:
        return None
    missing = [name for name in fitted if name not in names]
    if missing:
        raise ValueError(
            f"{source}: the column {missing[0]} is missing, which the model was fitted on; "
            f"there are {', '.join(names)}"
        )
    return tuple(fitted)
