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
    stdout.print(f"\nlabels: {settings.path}", soft_wrap=True)
    return None
