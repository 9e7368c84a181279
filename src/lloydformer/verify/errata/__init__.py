"""The items of docs/errata.md, by kind of the measurement."""

from lloydformer.verify.errata.citations import CITATIONS
from lloydformer.verify.errata.constructions import CONSTRUCTIONS
from lloydformer.verify.errata.degenerate import DEGENERATE
from lloydformer.verify.errata.experiments import EXPERIMENTS
from lloydformer.verify.errata.networks import NETWORKS
from lloydformer.verify.errata.notation import NOTATION
from lloydformer.verify.errata.rounding import ROUNDING
from lloydformer.verify.errata.thresholds import THRESHOLDS

ERRATA = tuple(
    sorted(
        (
            *CITATIONS,
            *CONSTRUCTIONS,
            *DEGENERATE,
            *EXPERIMENTS,
            *NETWORKS,
            *NOTATION,
            *ROUNDING,
            *THRESHOLDS,
        ),
        key=lambda s: int(s.__name__[2:4]),
    )
)
"""In the order of docs/errata.md; a function's name begins with its number there."""
