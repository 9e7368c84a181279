"""`lloydformer predict`: label new rows with a saved model."""

from pathlib import Path
from typing import Annotated

import typer

from lloydformer.cli.fit_words import print_clusters, print_notes, report_interrupt
from lloydformer.cli.options import (
    Decimal,
    Encoding,
    Header,
    IdColumn,
    Sep,
    Sheet,
    choice,
    names_of,
    stem_of,
)
from lloydformer.cli.terminal import print_json, stdout, working
from lloydformer.data.paths import check_source
from lloydformer.data.table_options import TableOptions
from lloydformer.jobs.fit.model_path import check_model


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A folder that fit wrote, or a saved model.")
    ],
    data: Annotated[str, typer.Argument(metavar="DATA", help="New rows; formats as for fit.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Output file.  [default: NAME-labels.csv]",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="a,b,c", help="Columns to use, if the data have no column names."),
    ] = None,
    id_column: IdColumn = None,
    missing: Annotated[
        str | None,
        choice(
            among=("error", "drop", "median"),
            metavar="error|drop|median",
            help="Rows with missing values, or words that the fit did not see.  "
            "[default: as in the fit]",
        ),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    sheet: Sheet = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Label the rows of DATA with a saved MODEL.

    Columns are found by the names that the model was fitted on, and scaled as in the fit. The
    file, .csv or .parquet, has the columns row (from 1), cluster, and distance to the center.
    """
    table = TableOptions(
        names_of(columns), (), (), False, id_column, missing or "error", sep,
        decimal, encoding, header, sheet, shell=True,
    )  # fmt: skip
    check_model(model)
    check_source(data)
    from lloydformer.jobs.predict import PredictJob

    path = output or Path(f"{stem_of(data)}-labels.csv")
    job = PredictJob(model, data, path, table, missing)
    job.check(force)
    with report_interrupt(), working("labelling"):
        found = job.run()
    if json:
        row = {"model": str(model), "data": data, "n": found.n_rows, "labels": str(path)}
        return print_json({**row, "notes": found.notes, "clusters": found.clusters()})
    print_clusters(found.sizes, found.mean_distances, found.n_rows)
    print_notes(found.notes)
    stdout.print(f"\nlabels: {path}", markup=False, soft_wrap=True)
    return None
