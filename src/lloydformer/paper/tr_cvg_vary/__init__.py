"""fig:tr-cvg-vary: how training converges, by the numbers of clusters and dimensions."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.tr_cvg_vary import experiment, pictures, tables, verdicts
from lloydformer.paper.tr_cvg_vary.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("fig:tr-cvg-vary",),
    title="Training by the numbers of clusters and dimensions",
    about=(
        "One layer is trained for k = 6 to 25 clusters in 32 dimensions and for 6 clusters in 4 to "
        "32 dimensions, with lambda = 0.1; validation is relative to one Lloyd step."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
