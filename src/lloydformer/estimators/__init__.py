"""scikit-learn estimators: one thin class for each algorithm, entered in `ALGORITHMS`."""

from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.circuit import CircuitClusterer
from lloydformer.estimators.kmeans import KMeans
from lloydformer.estimators.medoids import KMedoids
from lloydformer.estimators.registry import ALGORITHMS, RegisteredAlgorithm, register
from lloydformer.estimators.relocating import RelocatingKMeans
from lloydformer.estimators.robust import RobustKMeans
from lloydformer.estimators.soft import SoftKMeans
from lloydformer.estimators.spherical import SphericalKMeans
from lloydformer.estimators.trimmed import TrimmedKMeans

__all__ = [
    "ALGORITHMS",
    "CircuitClusterer",
    "Clusterer",
    "KMeans",
    "KMedoids",
    "RegisteredAlgorithm",
    "RelocatingKMeans",
    "RobustKMeans",
    "SoftKMeans",
    "SphericalKMeans",
    "TrimmedKMeans",
    "register",
]
