"""tab:med-res: randomised k-medoids on ten whole data sets, by sampling gap, and FasterPAM."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.med_res import experiment, tables, verdicts
from lloydformer.paper.med_res.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("tab:med-res",),
    title="Randomised k-medoids on real data",
    about=(
        "Medoids are drawn again in each of ten steps, from their own cluster and, if the gap "
        "delta is small, also from other clusters; k = 10, ten sets. FasterPAM for comparison."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
)
