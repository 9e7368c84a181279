"""fig:numerical_validation: Lloyd's algorithm and the transformer with gamma = 10^4."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.numerical_validation import experiment, pictures, tables, verdicts

ARTEFACT = Artefact(
    label="numerical-validation",
    cites=("fig:numerical_validation",),
    title="Numerical validation",
    about=(
        "Ten layers of the literal circuit with its n x n attention and a finite γ = 10⁴ in the "
        "encoder's cross-attention, compared with ten iterations of Lloyd's algorithm."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
    pictures=pictures.pictures,
)
