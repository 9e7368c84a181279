"""fig:lrn-attn-map: the attention maps of the learned heads next to the constructed ones."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.lrn_attn_map import experiment, pictures, tables, verdicts

ARTEFACT = Artefact(
    label="lrn-attn-map",
    cites=("fig:lrn-attn-map",),
    title="Learned and constructed attention maps",
    about=(
        "What each of the four attentions attends to in one update of 512 points, from random "
        "centers: the circuit of thm:l2-clus-eu and the learned layer, for d = 32 and k = 10."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
