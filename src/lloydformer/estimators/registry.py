"""The register of algorithms: each is registered once, by the file of its estimator.

Lists elsewhere (the command line, benchmarks, tests, tables in the documentation) are derived
from it. The names are known without importing an algorithm, so this module imports little.
"""

from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lloydformer.algorithms import Algorithm, Relocating
    from lloydformer.circuits.stages import AnyRecipe
    from lloydformer.estimators.base import Clusterer
    from lloydformer.plans.lower import Rule

# Names of the algorithms of this package; each is registered by the module of its name. They are
# listed here, so that the command line can name them without importing torch.
BUILT_IN = ("kmeans", "medoids", "relocating", "robust", "soft", "spherical", "trimmed")


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

    def __init__(self) -> None:
        # None until the module of the name is imported; `values` and `items` look names up, too.
        self.data = dict.fromkeys(BUILT_IN)  # type: ignore[assignment]

    def __getitem__(self, name: str) -> RegisteredAlgorithm:
        if name in self.data and self.data[name] is None:
            import_module(f"lloydformer.estimators.{name}")  # calls `register`
        return self.data[name]


ALGORITHMS = Register()


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
