"""The register of algorithms: each is entered once, by the file of its estimator.

Lists elsewhere (the command line, benchmarks, tests, tables in the documentation) are derived
from it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from lloydformer.algorithms import Algorithm, Relocating
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.estimators.base import Clusterer
from lloydformer.plans.lower import RULES, Rule


@dataclass(frozen=True)
class RegisteredAlgorithm:
    """An algorithm in all its forms.

    Parameters
    ----------
    name : str
        On the command line and in benchmarks.
    estimator : type
        The scikit-learn estimator.
    recipe : callable
        Makes the recipe; the plan is derived from it by `lower`, where it lowers.
    oracle : callable
        Makes the plain algorithm in NumPy, with the same parameters as the recipe.
    summary : str
        What it is for, in a few words.
    rule : callable, optional
        Lowers the recipe to its plan, where `lower` does not know it by itself.

    See Also
    --------
    register : Enter it.

    Examples
    --------
    >>> from lloydformer.estimators import ALGORITHMS
    >>> ALGORITHMS["trimmed"].estimator.__name__
    'TrimmedKMeans'
    """

    name: str
    estimator: type[Clusterer]
    recipe: Callable[..., AnyRecipe]
    oracle: Callable[..., Algorithm | Relocating]
    summary: str
    rule: Rule | None = None


ALGORITHMS: dict[str, RegisteredAlgorithm] = {}
"""Algorithms by name."""


def register(algorithm: RegisteredAlgorithm) -> None:
    """Enter an algorithm in `ALGORITHMS`.

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
    RegisteredAlgorithm : What an entry holds.

    Examples
    --------
    >>> from lloydformer.estimators import ALGORITHMS, register
    >>> register(ALGORITHMS["soft"])  # the same entry again changes nothing
    """
    known = ALGORITHMS.get(algorithm.name)
    if known is not None and known != algorithm:
        raise ValueError(
            f"name: found {algorithm.name!r}, which {known.estimator.__name__} has already; "
            "choose another"
        )
    ALGORITHMS[algorithm.name] = algorithm
    if algorithm.rule is not None and algorithm.rule not in RULES:
        RULES.append(algorithm.rule)
