"""The register of algorithms: the table of the built-in ones, and `register` for others.

Lists elsewhere (the command line, benchmarks, tests, tables in the documentation) are derived
from it. The names are known without importing an algorithm, so this module imports little.
"""

from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lloydformer.algorithms import Algorithm, Relocating
    from lloydformer.circuits.stages import AnyRecipe
    from lloydformer.estimators.base import Clusterer
    from lloydformer.plans.lower import Rule

# The algorithms of this package: class of the estimator (in the module of the algorithm's name),
# recipe, plain algorithm, purpose. By name, so that the command line can list them without
# importing torch.
BUILT_IN: dict[str, Any] = {
    "constrained": (
        "ConstrainedKMeans",
        "constrained",
        "Constrained",
        "clusters whose sizes are within bounds; balanced clusters",
    ),
    "kmeans": ("KMeans", "lloyd", "Lloyd", "round clusters of similar size; the fastest"),
    "medoids": ("KMedoids", "medoids", "Medoids", "centers that are points of the data"),
    "relocating": (
        "RelocatingKMeans",
        "relocating",
        "Relocating",
        "lower objectives than many starts, in less time",
    ),
    "robust": ("RobustKMeans", "robust", "Robust", "far points, which weigh less and less"),
    "soft": ("SoftKMeans", "soft", "Soft", "clusters that overlap; `predict_proba` gives shares"),
    "spherical": (
        "SphericalKMeans",
        "spherical",
        "Spherical",
        "only the direction of a row counts: text, embeddings",
    ),
    "trimmed": ("TrimmedKMeans", "trimmed", "Trimmed", "outliers, which it labels -1"),
}


@dataclass(frozen=True)
class RegisteredAlgorithm:
    """An algorithm in all its forms.

    Parameters
    ----------
    name : str
        Name on the command line and in benchmarks.
    estimator : type
        The scikit-learn estimator.
    recipe : callable
        Makes the recipe; the plan is derived from it by `lower`, where it lowers.
    oracle : callable
        Makes the plain algorithm in NumPy, with the same parameters as the recipe.
    summary : str
        Its purpose, in a few words.
    rule : callable, optional
        Lowers the recipe to its plan, where `lower` does not know it by itself.

    See Also
    --------
    register : Add it to the register.

    Examples
    --------
    >>> from lloydformer.estimators import ALGORITHMS
    >>> ALGORITHMS["trimmed"].estimator.__name__
    'TrimmedKMeans'
    """

    name: str
    estimator: "type[Clusterer]"
    recipe: "Callable[..., AnyRecipe]"
    oracle: "Callable[..., Algorithm | Relocating]"
    summary: str
    rule: "Rule | None" = None


class Register(UserDict[str, RegisteredAlgorithm]):
    """Algorithms by name; a built-in one is imported when it is first looked up."""

    def __getitem__(self, name: str) -> RegisteredAlgorithm:
        found: Any = self.data[name]
        if isinstance(found, tuple):  # a row of `BUILT_IN`
            from lloydformer import algorithms
            from lloydformer.circuits import recipes

            estimator, recipe, oracle, summary = found
            self.data[name] = RegisteredAlgorithm(
                name,
                getattr(import_module(f"lloydformer.estimators.{name}"), estimator),
                getattr(recipes, recipe),
                getattr(algorithms, oracle),
                summary,
            )
        return self.data[name]


ALGORITHMS = Register(BUILT_IN)


def register(algorithm: RegisteredAlgorithm) -> None:
    """Add an algorithm to `ALGORITHMS`.

    Parameters
    ----------
    algorithm : RegisteredAlgorithm
        The algorithm, under a name of its own.

    Raises
    ------
    ValueError
        If another one has this name.

    See Also
    --------
    RegisteredAlgorithm : An entry of the register.

    Examples
    --------
    >>> from lloydformer.estimators import ALGORITHMS, register
    >>> register(ALGORITHMS["soft"])  # the same entry again changes nothing
    """
    from lloydformer.plans.lower import RULES

    known = ALGORITHMS.get(algorithm.name)
    if known is not None and known != algorithm:
        raise ValueError(
            f"name: found {algorithm.name!r}, which {known.estimator.__name__} has already; "
            "choose another"
        )
    ALGORITHMS[algorithm.name] = algorithm
    if algorithm.rule is not None and algorithm.rule not in RULES:
        RULES.append(algorithm.rule)
