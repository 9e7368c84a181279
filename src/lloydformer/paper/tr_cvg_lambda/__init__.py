"""fig:tr-cvg-lambda: how training converges, by the temperature of the smoothed loss."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.tr_cvg_lambda import experiment, pictures, tables, verdicts
from lloydformer.paper.tr_cvg_lambda.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("fig:tr-cvg-lambda",),
    title="Training by the temperature of the loss",
    about=(
        "One layer is trained on tasks of k = 6 clusters with the objective smoothed by lambda = 1 "
        "to 0.1, in 4 and in 32 dimensions; validation is relative to one Lloyd step."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
