"""`lloydformer predict`: label new rows with a saved model."""

from typing import Any

import typer

from lloydformer.app.cli.fit import print_clusters, print_notes, report_interrupt
from lloydformer.app.cli.options import TABLE_OPTIONS, Json, choice, command_of
from lloydformer.app.cli.terminal import print_json, stdout, working
from lloydformer.app.jobs.fit.settings import PredictSettings

# The options, by the field of `PredictSettings` that each sets.
OPTIONS: dict[str, Any] = {
    "model": typer.Argument(metavar="MODEL", help="A folder that fit wrote, or a saved model."),
    "data": typer.Argument(metavar="DATA", help="New rows; formats as for fit."),
    "output": typer.Option(
        "-o", "--output", metavar="FILE", help="Output file.  [default: NAME-labels.csv]"
    ),
    "columns": typer.Option(
        metavar="a,b,c", help="Columns to use, if the data have no column names."
    ),
    "missing": choice(
        among=("error", "drop", "median"),
        metavar="error|drop|median",
        help="Rows with missing values, or words that the fit did not see.  "
        "[default: as in the fit]",
    ),
    **TABLE_OPTIONS,
    "force": typer.Option("--force", help="Replace the file if it exists."),
}


@command_of(PredictSettings, OPTIONS)
def predict(settings: PredictSettings, json: Json = False) -> None:
    """Label the rows of DATA with a saved MODEL.

    Columns are found by the names that the model was fitted on, and scaled as in the fit. The
    file, .csv or .parquet, has the columns row (from 1), cluster, and distance to the center.
    """
    from lloydformer.app.jobs.predict import PredictJob

    job = PredictJob(settings)
    with report_interrupt(), working("labelling"):
        prediction = job.run()
    if json:
        return print_json(
            {
                "model": str(settings.model),
                "data": settings.data,
                "n": prediction.n_rows,
                "labels": str(settings.path),
                "notes": prediction.notes,
                "clusters": prediction.clusters(),
            }
        )
    print_clusters(prediction.sizes, prediction.mean_distances, prediction.n_rows)
    print_notes(prediction.notes)
    stdout.print(f"\nlabels: {settings.path}", markup=False, soft_wrap=True)
    return None
