"""scikit-learn estimators: one thin class for each algorithm, entered in `ALGORITHMS`.

It imports `solving` and the rooms before it. Begin with `base.py` (what `fit` and `predict` do, for
all of them) and `kmeans.py` (one estimator); `source.py` turns what users pass into blocks,
`initial_centers.py` the parameter `init` into centers.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.estimators.base import Clusterer as Clusterer
    from lloydformer.estimators.circuit import CircuitClusterer as CircuitClusterer
    from lloydformer.estimators.constrained import ConstrainedKMeans as ConstrainedKMeans
    from lloydformer.estimators.kmeans import KMeans as KMeans
    from lloydformer.estimators.medoids import KMedoids as KMedoids
    from lloydformer.estimators.mixture import GaussianMixture as GaussianMixture
    from lloydformer.estimators.mixture_families import BernoulliMixture as BernoulliMixture
    from lloydformer.estimators.mixture_families import PoissonMixture as PoissonMixture
    from lloydformer.estimators.prototypes import KPrototypes as KPrototypes
    from lloydformer.estimators.registry import ALGORITHMS as ALGORITHMS
    from lloydformer.estimators.registry import RegisteredAlgorithm as RegisteredAlgorithm
    from lloydformer.estimators.registry import register as register
    from lloydformer.estimators.relocating import RelocatingKMeans as RelocatingKMeans
    from lloydformer.estimators.robust import RobustKMeans as RobustKMeans
    from lloydformer.estimators.scaler import Scaler as Scaler
    from lloydformer.estimators.soft import SoftKMeans as SoftKMeans
    from lloydformer.estimators.spherical import SphericalKMeans as SphericalKMeans
    from lloydformer.estimators.trimmed import TrimmedKMeans as TrimmedKMeans
else:  # the same names, each imported when it is first used
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "ALGORITHMS": "lloydformer.estimators.registry",
        "BernoulliMixture": "lloydformer.estimators.mixture_families",
        "CircuitClusterer": "lloydformer.estimators.circuit",
        "Clusterer": "lloydformer.estimators.base",
        "GaussianMixture": "lloydformer.estimators.mixture",
        "ConstrainedKMeans": "lloydformer.estimators.constrained",
        "KMeans": "lloydformer.estimators.kmeans",
        "KMedoids": "lloydformer.estimators.medoids",
        "PoissonMixture": "lloydformer.estimators.mixture_families",
        "KPrototypes": "lloydformer.estimators.prototypes",
        "RegisteredAlgorithm": "lloydformer.estimators.registry",
        "RelocatingKMeans": "lloydformer.estimators.relocating",
        "RobustKMeans": "lloydformer.estimators.robust",
        "Scaler": "lloydformer.estimators.scaler",
        "SoftKMeans": "lloydformer.estimators.soft",
        "SphericalKMeans": "lloydformer.estimators.spherical",
        "TrimmedKMeans": "lloydformer.estimators.trimmed",
        "register": "lloydformer.estimators.registry",
    }
    __all__ = [*_HOMES]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
