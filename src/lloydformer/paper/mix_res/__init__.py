"""tab:mix-res and fig:mix-res: a trained layer on mixtures of families that it has not seen."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.mix_res import experiment, pictures, tables, verdicts
from lloydformer.paper.mix_res.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("tab:mix-res", "fig:mix-res"),
    title="Mixtures of other families",
    about=(
        "A layer trained on mixtures of Gaussians takes 20 steps on mixtures of five families, "
        "and so does Lloyd's algorithm from the same random points."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
