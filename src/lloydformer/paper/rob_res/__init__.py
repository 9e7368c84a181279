"""tab:rob-res: trimmed and robust k-means next to Lloyd's algorithm, on ten whole data sets."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.rob_res import experiment, tables, verdicts
from lloydformer.paper.rob_res.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("tab:rob-res",),
    title="Trimmed and robust k-means on real data",
    about=(
        "Trimmed k-means (the authors' strict quantile) and robust k-means (sparsemax of -gamma "
        "times the squared distance over sqrt(d)) and Lloyd's algorithm, k = 10, on ten sets."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
)
