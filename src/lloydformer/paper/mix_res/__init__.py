"""tab:mix-res and fig:mix-res: a trained layer on mixtures of families that it has not seen."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.mix_res import claims, experiment, pictures, tables
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
    claims=claims.claims,
    tables=tables.tables,
    pictures=pictures.pictures,
    order=8,
)
