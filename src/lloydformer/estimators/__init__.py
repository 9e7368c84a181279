"""scikit-learn estimators: one thin class per algorithm."""

from lloydformer.estimators.base import Clusterer
from lloydformer.estimators.circuit import CircuitClusterer
from lloydformer.estimators.kmeans import KMeans
from lloydformer.estimators.medoids import KMedoids
from lloydformer.estimators.relocating import RelocatingKMeans
from lloydformer.estimators.robust import RobustKMeans
from lloydformer.estimators.soft import SoftKMeans
from lloydformer.estimators.spherical import SphericalKMeans
from lloydformer.estimators.trimmed import TrimmedKMeans

__all__ = [
    "CircuitClusterer",
    "Clusterer",
    "KMeans",
    "KMedoids",
    "RelocatingKMeans",
    "RobustKMeans",
    "SoftKMeans",
    "SphericalKMeans",
    "TrimmedKMeans",
]
