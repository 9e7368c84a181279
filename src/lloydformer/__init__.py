"""lloydformer: clustering algorithms as transformers with hand-set weights."""

from importlib.metadata import PackageNotFoundError, version

from lloydformer import data, learning
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.trace import Trace
from lloydformer.estimators import (
    CircuitClusterer,
    KMeans,
    KMedoids,
    RelocatingKMeans,
    RobustKMeans,
    SoftKMeans,
    SphericalKMeans,
    TrimmedKMeans,
)
from lloydformer.learning.estimator import LearnedKMeans
from lloydformer.solving.batch.fit import BatchResult, fit_batch
from lloydformer.solving.progress import ProgressBar
from lloydformer.verify.checking.check import check
from lloydformer.verify.checking.result import CheckResult

try:
    __version__ = version("lloydformer")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0.1.0"

__all__ = [
    "BatchResult",
    "CheckResult",
    "Circuit",
    "CircuitClusterer",
    "KMeans",
    "KMedoids",
    "LearnedKMeans",
    "ProgressBar",
    "Recipe",
    "RelocatingKMeans",
    "RobustKMeans",
    "SoftKMeans",
    "SphericalKMeans",
    "Trace",
    "TrimmedKMeans",
    "__version__",
    "check",
    "data",
    "fit_batch",
    "learning",
    "recipes",
]
