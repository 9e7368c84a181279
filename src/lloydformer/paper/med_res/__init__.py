"""tab:med-res: randomised k-medoids on ten whole data sets, by sampling gap, and FasterPAM."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.med_res import claims, experiment, tables
from lloydformer.paper.med_res.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("tab:med-res",),
    title="Randomised k-medoids on real data",
    about=(
        "Medoids drawn anew in each of ten steps, from the own cluster and, the smaller the gap "
        "delta, from outside of it; k = 10, ten sets; FasterPAM beside."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    claims=claims.claims,
    tables=tables.tables,
    order=12,
)
