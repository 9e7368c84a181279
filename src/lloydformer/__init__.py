"""lloydformer: clustering algorithms as transformers with hand-set weights."""

from typing import TYPE_CHECKING

__version__ = "0.2.0"  # as in pyproject.toml; importlib.metadata is slow to import

if TYPE_CHECKING:
    from lloydformer import data as data
    from lloydformer import export as export
    from lloydformer import interp as interp
    from lloydformer import learning as learning
    from lloydformer import nn as nn
    from lloydformer import plots as plots
    from lloydformer.app.explorer.embedded import EmbeddedPage as EmbeddedPage
    from lloydformer.circuits import recipes as recipes
    from lloydformer.circuits.activations import TopK as TopK
    from lloydformer.circuits.circuit import Circuit as Circuit
    from lloydformer.circuits.recipe import Recipe as Recipe
    from lloydformer.circuits.trace import Trace as Trace
    from lloydformer.data.shard import Shard as Shard
    from lloydformer.estimators.base import Clusterer as Clusterer
    from lloydformer.estimators.circuit import CircuitClusterer as CircuitClusterer
    from lloydformer.estimators.constrained import ConstrainedKMeans as ConstrainedKMeans
    from lloydformer.estimators.kmeans import KMeans as KMeans
    from lloydformer.estimators.medoids import KMedoids as KMedoids
    from lloydformer.estimators.mixture import GaussianMixture as GaussianMixture
    from lloydformer.estimators.mixture_families import BernoulliMixture as BernoulliMixture
    from lloydformer.estimators.mixture_families import PoissonMixture as PoissonMixture
    from lloydformer.estimators.prototypes import KPrototypes as KPrototypes
    from lloydformer.estimators.relocating import RelocatingKMeans as RelocatingKMeans
    from lloydformer.estimators.robust import RobustKMeans as RobustKMeans
    from lloydformer.estimators.scaler import Scaler as Scaler
    from lloydformer.estimators.soft import SoftKMeans as SoftKMeans
    from lloydformer.estimators.spherical import SphericalKMeans as SphericalKMeans
    from lloydformer.estimators.trimmed import TrimmedKMeans as TrimmedKMeans
    from lloydformer.export.transformer import compile_transformer as compile_transformer
    from lloydformer.learning.estimator import LearnedKMeans as LearnedKMeans
    from lloydformer.paper.verify.checking.check import check as check
    from lloydformer.paper.verify.checking.result import CheckResult as CheckResult
    from lloydformer.plots.report.clusters import report as report
    from lloydformer.profiles.description import Description as Description
    from lloydformer.profiles.description import describe as describe
    from lloydformer.solving.batch.fit import BatchResult as BatchResult
    from lloydformer.solving.batch.fit import fit_batch as fit_batch
    from lloydformer.solving.progress import ProgressBar as ProgressBar
    from lloydformer.solving.run import Progress as Progress
else:  # the same names, each imported when it is first used
    from lloydformer import (
        fork_safety as fork_safety,  # from here on forks wait for imports by other threads
    )
    from lloydformer.estimators.presentation import SHOWN_BY
    from lloydformer.lazy_imports import lazy_names

    _HOMES = {
        "BatchResult": "lloydformer.solving.batch.fit",
        "BernoulliMixture": "lloydformer.estimators.mixture_families",
        "CheckResult": "lloydformer.paper.verify.checking.result",
        "Circuit": "lloydformer.circuits.circuit",
        "CircuitClusterer": "lloydformer.estimators.circuit",
        "Clusterer": "lloydformer.estimators.base",
        "ConstrainedKMeans": "lloydformer.estimators.constrained",
        "Description": "lloydformer.profiles.description",
        "EmbeddedPage": "lloydformer.app.explorer.embedded",
        "GaussianMixture": "lloydformer.estimators.mixture",
        "KMeans": "lloydformer.estimators.kmeans",
        "KMedoids": "lloydformer.estimators.medoids",
        "LearnedKMeans": "lloydformer.learning.estimator",
        "PoissonMixture": "lloydformer.estimators.mixture_families",
        "Progress": "lloydformer.solving.run",
        "KPrototypes": "lloydformer.estimators.prototypes",
        "ProgressBar": "lloydformer.solving.progress",
        "Recipe": "lloydformer.circuits.recipe",
        "RelocatingKMeans": "lloydformer.estimators.relocating",
        "RobustKMeans": "lloydformer.estimators.robust",
        "Scaler": "lloydformer.estimators.scaler",
        "Shard": "lloydformer.data.shard",
        "SoftKMeans": "lloydformer.estimators.soft",
        "SphericalKMeans": "lloydformer.estimators.spherical",
        "TopK": "lloydformer.circuits.activations",
        "Trace": "lloydformer.circuits.trace",
        "TrimmedKMeans": "lloydformer.estimators.trimmed",
        "check": "lloydformer.paper.verify.checking.check",
        "compile_transformer": "lloydformer.export.transformer",
        "describe": "lloydformer.profiles.description",
        "fit_batch": "lloydformer.solving.batch.fit",
        "recipes": "lloydformer.circuits",
        "report": "lloydformer.plots.report.clusters",
    }
    __all__ = [*_HOMES, "__version__", "data", "export", "interp", "learning", "nn", "plots"]
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
    # The functions behind methods of estimators, which are a room before these.
    SHOWN_BY["describe"] = "lloydformer.profiles.description:describe"
    SHOWN_BY["plot"] = "lloydformer.plots.models:plot"
