"""fig:numerical_validation: Lloyd's algorithm and the transformer with gamma = 10^4."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.numerical_validation import claims, experiment, pictures, tables

ARTEFACT = Artefact(
    label="numerical-validation",
    cites=("fig:numerical_validation",),
    title="Numerical validation",
    about=(
        "Ten layers of the literal circuit, its n x n attention included, beside ten iterations of "
        "Lloyd's algorithm, with a finite γ = 10⁴ in the encoder's cross-attention."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    claims=claims.claims,
    tables=tables.tables,
    pictures=pictures.pictures,
    order=1,
)
