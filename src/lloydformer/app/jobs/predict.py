"""`lloydformer predict`: label new rows with a saved model."""

from dataclasses import dataclass, replace
from typing import Any

from lloydformer.app.jobs.fit.job import name_data
from lloydformer.app.jobs.fit.label_file import check_kind, write_labels
from lloydformer.app.jobs.fit.outputs import load_columns, load_model
from lloydformer.app.jobs.fit.result import assign_rows
from lloydformer.app.jobs.fit.settings import PredictSettings
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.sources import OpenedTable, open_table, to_blocks
from lloydformer.data.storage.atomic_files import (
    atomic_write,
    check_apart,
    check_writable,
    refuse_to_overwrite,
)
from lloydformer.estimators.base import Clusterer


@dataclass(frozen=True)
class Prediction:
    """The clusters of new rows: how many rows each has, and their mean distance to the center."""

    n_rows: int
    sizes: list[int]
    mean_distances: list[float]
    notes: list[str]

    def clusters(self) -> dict[str, dict[str, Any]]:
        """Return size and mean distance by the number of the cluster, as JSON."""
        pairs = zip(self.sizes, self.mean_distances, strict=True)
        return {str(j): {"size": n, "mean_distance": d} for j, (n, d) in enumerate(pairs)}


class PredictJob:
    """Label new rows, and write the file.

    The constructor raises ValueError for a file that exists or cannot be written.
    """

    def __init__(self, settings: PredictSettings) -> None:
        self.settings, path = settings, settings.path
        self.kind = path.suffix.removeprefix(".")
        check_kind(self.kind, f"--output {path}")
        check_apart(path, settings.data)
        refuse_to_overwrite(path, settings.force)
        check_writable(path)

    def run(self) -> Prediction:
        """Label the rows and write the file."""
        model = load_model(self.settings.model)
        table, blocks = self._read(model)
        with name_data(self.settings.data, table):
            assignment = assign_rows(model, blocks)
        with atomic_write(self.settings.path) as file:
            write_labels(file, self.kind, assignment, table)
        k = len(model.cluster_centers_)
        sizes, distances = assignment.sizes(k), assignment.mean_distances(k)
        return Prediction(blocks.n_rows, sizes.tolist(), distances.tolist(), list(table.notes))

    def _read(self, model: Clusterer) -> tuple[OpenedTable, TensorBlocks]:
        """Open the data with the model's columns, or with those of --columns.

        Raises ValueError if the number of columns is not the model's.
        """
        columns = load_columns(self.settings.model, model)
        data = self.settings.data
        options = self.settings.table_options(missing=self.settings.missing or columns.missing)
        if options.columns is not None:
            table = open_table(data, options)
            blocks = to_blocks(table)
        else:
            fills = [feature.fill for feature in columns.conversion.features]
            if options.missing == "median" and None in fills:
                raise ValueError(
                    "--missing median: this model has no medians; fit it with --missing median, "
                    "or pass --missing drop"
                )
            table = open_table(data, options, columns.conversion)
            # Columns of a table without names are found by their numbers, but the estimator
            # refuses rows that do not have the names of the fit.
            names = getattr(model, "feature_names_in_", None)
            blocks = replace(to_blocks(table), names=None if names is None else tuple(names))
        if blocks.n_features != model.n_features_in_:
            raise ValueError(
                f"{data}: found {blocks.n_features} columns; this model was fitted on "
                f"{model.n_features_in_}; choose them with --columns"
            )
        return table, blocks
