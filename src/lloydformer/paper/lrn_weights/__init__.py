"""fig:lrn-weights: the learned matrices next to the constructed ones."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.lrn_weights import experiment, pictures, tables, verdicts

ARTEFACT = Artefact(
    label="lrn-weights",
    cites=("fig:lrn-weights",),
    title="Learned and constructed weights",
    about=(
        "The matrices Q, K, V and Q^T K of the four attentions, as constructed in thm:l2-clus-eu "
        "and as learned, for d = 32 and k = 10: all are 42 x 42."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
