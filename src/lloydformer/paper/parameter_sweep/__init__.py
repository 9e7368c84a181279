"""fig:parameter_sweep: how close soft k-means is to Lloyd's as the size of the problem changes."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.parameter_sweep import experiment, pictures, tables, verdicts

ARTEFACT = Artefact(
    label="parameter-sweep",
    cites=("fig:parameter_sweep", "asec:num-val"),
    title="Parameter sweep",
    about=(
        "The transformer with a finite gamma against Lloyd's algorithm, over the number of "
        "clusters, dimensions and points and the scale of the data. A run is soft k-means: the "
        "authors took both self-attentions as the identity and the decoder's cross-attention as "
        "linear."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
