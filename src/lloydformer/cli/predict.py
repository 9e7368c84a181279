"""`lloydformer predict`: label new rows with a saved model."""

from pathlib import Path
from typing import Annotated

import typer

from lloydformer.cli.fit_words import print_clusters, report_interrupt
from lloydformer.cli.options import names_of, stem_of
from lloydformer.cli.terminal import print_json, stdout, working
from lloydformer.data.paths import check_source
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
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Label the rows of DATA with a saved MODEL.

    Columns are found by the names that the model was fitted on, and scaled as in the fit. The
    file, .csv or .parquet, has the columns row (from 1), cluster, and distance to the center.
    """
    check_model(model)
    check_source(data)
    from lloydformer.jobs.predict import PredictJob

    path = output or Path(f"{stem_of(data)}-labels.csv")
    job = PredictJob(model, data, path, names_of(columns))
    job.check(force)
    with report_interrupt(), working("labelling"):
        found = job.run()
    if json:
        row = {"model": str(model), "data": data, "n": found.n_rows, "labels": str(path)}
        return print_json({**row, "clusters": found.clusters()})
    print_clusters(found.sizes, found.mean_distances, found.n_rows)
    stdout.print(f"\nlabels: {path}", markup=False, soft_wrap=True)
    return None
