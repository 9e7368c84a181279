"""tab:comp-alg: the rows as the recipes print them, and each circuit against its algorithm."""

from lloydformer.paper.artefact import Artefact
from lloydformer.paper.comp_alg import experiment, tables, verdicts

ARTEFACT = Artefact(
    label="comp-alg",
    cites=("tab:comp-alg",),
    title="Architectures and algorithms",
    about=(
        "Different configurations of the transformer are different clustering algorithms. The "
        "table is printed from the recipes, and each recipe's literal circuit is compared with its "
        "plain algorithm on random problems, with ties, duplicates and data far from the origin."
    ),
    pieces=experiment.pieces,
    result=experiment.result,
    verdicts=verdicts.verdicts,
    tables=tables.tables,
)
