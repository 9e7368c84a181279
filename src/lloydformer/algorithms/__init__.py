"""The paper's algorithms, plainly, in float64: what the circuits are held against.

They share nothing with the circuits but the noise.
"""

from lloydformer.algorithms.contract import Algorithm, History, run
from lloydformer.algorithms.lloyd import Lloyd, LloydBinary
from lloydformer.algorithms.medoids import Medoids
from lloydformer.algorithms.relocating import Course, Relocating
from lloydformer.algorithms.robust import Robust
from lloydformer.algorithms.soft import Soft
from lloydformer.algorithms.spherical import Spherical
from lloydformer.algorithms.trimmed import Trimmed

__all__ = [
    "Algorithm",
    "Course",
    "History",
    "Lloyd",
    "LloydBinary",
    "Medoids",
    "Relocating",
    "Robust",
    "Soft",
    "Spherical",
    "Trimmed",
    "run",
]
