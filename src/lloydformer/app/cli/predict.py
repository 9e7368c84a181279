"""`lloydformer predict`: label new rows with a saved model."""

from lloydformer.app.cli.fit import print_clusters, print_notes, report_interrupt
from lloydformer.app.cli.terminal import print_json, stdout, working
from lloydformer.app.jobs.fit.settings import PredictSettings
from lloydformer.app.options import Json, command_of


@command_of(PredictSettings)
def predict(settings: PredictSettings, json: Json = False) -> None:
    """Label the rows of DATA with a saved MODEL.

    Columns are found by the names that the model was fitted on, and scaled as in the fit. The
    file, .csv or .parquet, has the columns row (from 1), cluster, and distance to the center.
    """
    from lloydformer.app.jobs.predict import label_rows

    with report_interrupt(), working("labelling"):
        found, totals = label_rows(settings)
    if json:
        return print_json(found)
    print_clusters(totals)
    print_notes(found["notes"])
    return stdout.print(f"\nlabels: {settings.path}", soft_wrap=True)
