"""The errors of the paper's text: each fails as printed and holds as repaired."""

from lloydformer.verify.errata.constructions import CONSTRUCTIONS
from lloydformer.verify.errata.degenerate import DEGENERATE
from lloydformer.verify.errata.rounding import ROUNDING
from lloydformer.verify.errata.thresholds import THRESHOLDS

ERRATA = tuple(
    sorted(
        (*CONSTRUCTIONS, *DEGENERATE, *ROUNDING, *THRESHOLDS), key=lambda s: int(s.__name__[2:4])
    )
)
"""In the order of docs/errata.md; a function's name begins with its number there."""
