"""Load a saved model, and open data with the columns it was fitted on."""

from dataclasses import replace
from pathlib import Path

from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.opened import OpenedTable, open_table
from lloydformer.data.sources import blocks_of
from lloydformer.data.table_options import TableOptions
from lloydformer.estimators.base import Clusterer
from lloydformer.jobs.fit.model_columns import ModelColumns, read_columns
from lloydformer.jobs.fit.model_path import folder_of_model


def load_model(path: Path) -> Clusterer:
    """Load a model from its folder, or from the output folder of a fit.

    Raises ValueError if there is no model, or if it is not fitted.
    """
    model = Clusterer.from_pretrained(folder_of_model(path))
    if not hasattr(model, "cluster_centers_"):
        raise ValueError(f"{path}: this model is not fitted; fit it, and save it again")
    return model


def load_columns(path: Path, model: Clusterer) -> ModelColumns:
    """How the columns of the fit became the features of its model."""
    return read_columns(folder_of_model(path), model)


def open_for_model(
    model: Clusterer, columns: ModelColumns, source: str, options: TableOptions
) -> tuple[OpenedTable, TensorBlocks]:
    """Open data with the model's columns, or with those of the options if they name some.

    Raises ValueError if the number of columns is not the model's.
    """
    if options.columns is not None:
        table = open_table(source, options)
        blocks = blocks_of(table)
    else:
        _check_fills(columns, options)
        table = open_table(source, options, columns.conversion)
        names = getattr(model, "feature_names_in_", None)
        blocks = replace(blocks_of(table), names=None if names is None else tuple(names))
    if blocks.n_features != model.n_features_in_:
        raise ValueError(
            f"{source}: found {blocks.n_features} columns; this model was fitted on "
            f"{model.n_features_in_}; choose them with --columns"
        )
    return table, blocks


def _check_fills(columns: ModelColumns, options: TableOptions) -> None:
    if options.missing == "median" and any(f.fill is None for f in columns.conversion.features):
        raise ValueError(
            "--missing median: this model has no medians; fit it with --missing median, or pass "
            "--missing drop"
        )
