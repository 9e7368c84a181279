"""The plain algorithms in NumPy and float64: the oracle that circuits are compared with.

They share no code with the circuits except the noise.
"""

from lloydformer.algorithms.contract import Algorithm, History, run
from lloydformer.algorithms.lloyd import Lloyd, LloydBinary
from lloydformer.algorithms.medoids import Medoids
from lloydformer.algorithms.recombining import Recombining, RecombiningHistory
from lloydformer.algorithms.relocating import Relocating, RelocatingHistory
from lloydformer.algorithms.robust import Robust
from lloydformer.algorithms.soft import Soft
from lloydformer.algorithms.spherical import Spherical
from lloydformer.algorithms.trimmed import Trimmed

__all__ = [
    "Algorithm",
    "History",
    "Lloyd",
    "LloydBinary",
    "Medoids",
    "Recombining",
    "RecombiningHistory",
    "Relocating",
    "RelocatingHistory",
    "Robust",
    "Soft",
    "Spherical",
    "Trimmed",
    "run",
]
