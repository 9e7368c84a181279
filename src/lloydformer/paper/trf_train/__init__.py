"""fig:trf-train: the trained layer against Lloyd's algorithm, by embedding, start and size."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.trf_train import experiment, pictures, tables, verdicts
from lloydformer.paper.trf_train.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("fig:trf-train",),
    title="The trained transformer against Lloyd's algorithm",
    about=(
        "One layer, trained for a single step on mixtures of Gaussians, is applied 20 times to new "
        "tasks, and so is Lloyd's algorithm from the same centers: with and without the k scratch "
        "dimensions, from random points and from k-means++, and with 128 to 2048 points."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
