"""Load a saved model, and open data with the columns it was fitted on."""

from pathlib import Path

from lloydformer import data
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.column_names import column_names
from lloydformer.data.columns import shortened
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.model_path import folder_of_model


def load_model(path: Path) -> Clusterer:
    """Load a model from its folder, or from the output folder of a fit.

    Raises ValueError if there is no model, or if it is not fitted.
    """
    model = Clusterer.from_pretrained(folder_of_model(path))
    if not hasattr(model, "cluster_centers_"):
        raise ValueError(f"{path}: this model is not fitted; fit it, and save it again")
    return model


def open_for_model(
    model: Clusterer, source: str, columns: tuple[str, ...] | None = None
) -> TensorBlocks:
    """Open data with the model's columns, or with `columns` if given.

    Raises ValueError if the number of columns is not the model's.
    """
    blocks = data.open(source, columns=columns or columns_of_model(model, source))
    if blocks.n_features != model.n_features_in_:
        raise ValueError(
            f"{source}: found {blocks.n_features} columns; this model was fitted on "
            f"{model.n_features_in_}; choose them with --columns"
        )
    return blocks


def columns_of_model(model: Clusterer, source: str) -> tuple[str, ...] | None:
    """The column names of the model, in its order; None (all columns) without names.

    Raises ValueError if the data lack one of the columns.
    """
    fitted = getattr(model, "feature_names_in_", None)
    names = column_names(Path(source))
    if fitted is None or names is None:
        return None
    there = set(names)
    missing = [name for name in fitted if name not in there]
    if missing:
        raise ValueError(
            f"{source}: column {missing[0]} is missing, and the model was fitted on it; the "
            f"columns are {shortened(names)}"
        )
    return tuple(fitted)
