"""The plain algorithms in NumPy and float64: what circuits, plans and kernels are compared with.

They import nothing but the noise and the constants of searches from `numerics`, and no production
code imports them: an estimator only names its algorithm, for checks and tests. Begin with
`contract` (an iteration in three steps) and `lloyd`. `medoid_search` is used by its own name.
"""

from lloydformer.algorithms.constrained import Constrained
from lloydformer.algorithms.contract import Algorithm, History, run
from lloydformer.algorithms.lloyd import Lloyd, LloydBinary, Soft, Spherical, SphericalSoft
from lloydformer.algorithms.missing import Missing
from lloydformer.algorithms.mixture import Mixture, MixtureState
from lloydformer.algorithms.prototypes import Prototypes
from lloydformer.algorithms.recombining import Recombining, RecombiningHistory
from lloydformer.algorithms.relocating import Relocating, RelocatingHistory
from lloydformer.algorithms.robust import (
    Medoids,
    Robust,
    SphericalMedoids,
    SphericalRobust,
    SphericalTrimmed,
    Trimmed,
)

__all__ = [
    "Algorithm",
    "Constrained",
    "History",
    "Lloyd",
    "LloydBinary",
    "Medoids",
    "Missing",
    "Mixture",
    "MixtureState",
    "Prototypes",
    "Recombining",
    "RecombiningHistory",
    "Relocating",
    "RelocatingHistory",
    "Robust",
    "Soft",
    "Spherical",
    "SphericalMedoids",
    "SphericalRobust",
    "SphericalSoft",
    "SphericalTrimmed",
    "Trimmed",
    "run",
]
