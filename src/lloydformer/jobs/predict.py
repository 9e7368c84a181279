"""`lloydformer predict`: label new rows with a saved model."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lloydformer.data.table_options import TableOptions
from lloydformer.jobs.fit.assignment import assign_rows
from lloydformer.jobs.fit.data_errors import errors_about
from lloydformer.jobs.fit.label_file import check_kind, write_labels
from lloydformer.jobs.fit.saved_model import load_columns, load_model, open_for_model
from lloydformer.storage.atomic import check_apart, check_writable, replacing
from lloydformer.storage.overwrite import refuse_to_overwrite


@dataclass(frozen=True)
class Prediction:
    """The clusters of new rows: how many rows each has, and their mean distance to the center."""

    n_rows: int
    sizes: list[int]
    mean_distances: list[float]
    notes: list[str]

    def clusters(self) -> dict[str, dict[str, Any]]:
        """Size and mean distance by the number of the cluster, as JSON."""
        pairs = zip(self.sizes, self.mean_distances, strict=True)
        return {str(j): {"size": n, "mean_distance": d} for j, (n, d) in enumerate(pairs)}


@dataclass(frozen=True)
class PredictJob:
    """A model, new data, and the file of labels to write.

    `check` raises ValueError before the work for an output that cannot be written.
    """

    model: Path
    data: str
    output: Path
    table: TableOptions = TableOptions(shell=True)  # noqa: RUF009 (frozen)
    missing: str | None = None
    """What to do with missing values; by default what the fit did."""

    @property
    def kind(self) -> str:
        return self.output.suffix.removeprefix(".")

    def check(self, force: bool) -> None:
        check_kind(self.kind, f"--output {self.output}")
        check_apart(self.output, self.data)
        refuse_to_overwrite(self.output, force)
        check_writable(self.output)

    def run(self) -> Prediction:
        """Label the rows and write the file."""
        model = load_model(self.model)
        columns = load_columns(self.model, model)
        options = self.table.changed(missing=self.missing or columns.missing)
        table, blocks = open_for_model(model, columns, self.data, options)
        with errors_about(self.data, table):
            assignment = assign_rows(model, blocks)
        with replacing(self.output) as file:
            write_labels(file, self.kind, assignment, table)
        k = len(model.cluster_centers_)
        sizes, distances = assignment.sizes(k), assignment.mean_distances(k)
        return Prediction(blocks.n_rows, sizes.tolist(), distances.tolist(), list(table.notes))
