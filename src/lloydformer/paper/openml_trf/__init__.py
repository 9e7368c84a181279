"""tab:openml-trf: the trained layer on 15 real data sets, next to Lloyd's algorithm."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.openml_trf import experiment, tables, verdicts
from lloydformer.paper.openml_trf.settings import LABEL

ARTEFACT = Artefact(
    label=LABEL,
    cites=("tab:openml-trf",),
    title="The trained transformer on real data",
    about=(
        "A layer trained on mixtures of Gaussians (d = 32, k = 10) and Lloyd's algorithm take ten "
        "steps on 15 OpenML sets; every trial has its own rows, columns and random centers."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
)
