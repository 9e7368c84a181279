"""`lloydformer predict`: label new rows with a saved model."""

from dataclasses import replace
from typing import Any

from lloydformer.app.jobs.fit.job import name_data
from lloydformer.app.jobs.fit.label_file import check_kind, write_labels
from lloydformer.app.jobs.fit.outputs import ModelColumns, load_columns, load_model
from lloydformer.app.jobs.fit.settings import PredictSettings
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sources import OpenedTable, open_table, to_blocks
from lloydformer.data.storage.atomic_files import (
    atomic_write,
    check_apart,
    check_writable,
    refuse_to_overwrite,
)
from lloydformer.estimators.mixture import AnyClusterer
from lloydformer.profiles.assignment import ClusterTotals, assign_rows


def label_rows(settings: PredictSettings) -> tuple[dict[str, Any], ClusterTotals]:
    """Label new rows and write the file of labels.

    Returns the JSON output, and the totals that the command prints as a table. Raises ValueError,
    before any work, for a file that exists or cannot be written.
    """
    path = settings.path
    kind = path.suffix.removeprefix(".")
    check_kind(kind, f"--output {path}")
    check_apart(path, settings.data)  # --force must not replace the data
    refuse_to_overwrite(path, settings.force)
    check_writable(path)
    model = load_model(settings.model)
    table, blocks = _open_rows(settings, model)
    with name_data(settings.data, table):
        assignment = assign_rows(model, blocks)
    with atomic_write(path) as file:
        write_labels(file, kind, assignment, table, keep_columns=settings.keep_columns)
    totals = assignment.totals(len(model.cluster_centers_))
    pairs = zip(totals.sizes, totals.mean_distances, strict=True)
    found = {
        "model": str(settings.model),
        "data": settings.data,
        "n": blocks.n_rows,
        "labels": str(path),
        "notes": list(table.notes),
        "clusters": {str(j): {"size": n, "mean_distance": d} for j, (n, d) in enumerate(pairs)},
    }
    return found, totals


def _open_rows(settings: PredictSettings, model: AnyClusterer) -> tuple[OpenedTable, TensorBlocks]:
    """Open the data with the model's columns, or with those of --columns in their place.

    Raises ValueError if the number of columns is not the model's, or medians are asked for that
    it does not have.
    """
    columns = load_columns(settings.model, model)
    data, missing = settings.data, settings.missing or columns.missing
    options = settings.table_options(missing=missing)
    # As in the fit: columns by name, words by the same columns of 0 and 1, the same medians.
    fills = [feature.fill for feature in columns.conversion.features]
    if options.missing == "median" and None in fills:
        raise ValueError(
            "--missing median: this model has no medians; fit it with --missing median, "
            "or pass --missing drop"
        )
    table = open_table(data, options, columns.conversion)
    blocks = to_blocks(table)
    if options.columns is None:
        # Columns of a table without names are found by their numbers, but the estimator
        # refuses rows that do not have the names of the fit.
        names = getattr(model, "feature_names_in_", None)
        blocks = replace(blocks, names=None if names is None else tuple(names))
    if blocks.n_features != model.n_features_in_:
        raise ValueError(
            f"{data}: found {blocks.n_features} columns; this model was fitted on "
            f"{model.n_features_in_}; choose them with --columns"
        )
    if settings.id_column is None and columns.id_column is not None:
        table = _name_rows(table, columns)
    return table, blocks


def _name_rows(table: OpenedTable, columns: ModelColumns) -> OpenedTable:
    """Name the rows by the column that named them in the fit, or say that it is missing."""
    name, source = str(columns.id_column), table.source
    # Positions say nothing if only one of the two files has names.
    alike = columns.conversion.named == (source.names is not None)
    known = {source.label(i) for i in range(source.width)} if alike else set()
    if name in known:
        return replace(table, remembered_id=name)
    note = (
        f"{source.name}: no column {name}, which named the rows in the fit; the labels have row "
        "numbers"
    )
    return replace(table, notes=(*table.notes, note))
