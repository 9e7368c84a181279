"""The plain algorithm that each recipe of the package, or a variant of it, must equal."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.algorithms.medoid_search import MedoidSearch
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Softmax, Sparsemax, Ties
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.robust_kmeans import Weighting
from lloydformer.circuits.scores import DotProduct, Scaled
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.symmetric import Fixed
from lloydformer.estimators import ALGORITHMS

# Separation of medoids if the recipe leaves it open: no point of another cluster is drawn, since
# its weight is exp(-2e8).
NEVER = 1e8

# `step(points, centers)` or `step(points, centers, iteration)`: the new centers.
StepFunction = Callable[..., Any]


@dataclass(frozen=True)
class PairParameters:
    """Parameters that a recipe and its algorithm share; each pair uses some of them."""

    ties: Ties = "first"
    inverse_temperature: float = 1.0
    keep: float = 0.95
    separation: float = 100.0
    activation: Weighting = "sparsemax"
    seed: int = 0


class Pair(NamedTuple):
    """Makers of a recipe and of the algorithm that it must equal, and the parameters they share."""

    recipe: Callable[..., Recipe]
    algorithm: Callable[..., algorithms.Algorithm]
    shared: tuple[str, ...]


_ROBUST = ("ties", "inverse_temperature", "activation")
# By the name of the recipe; spherical with either norm.
PAIRS = {
    "lloyd": Pair(recipes.lloyd, algorithms.Lloyd, ("ties",)),
    "lloyd_dot": Pair(recipes.lloyd_dot, algorithms.Lloyd, ("ties",)),
    "spherical": Pair(partial(recipes.spherical, "rms"), algorithms.Spherical, ("ties",)),
    "spherical_layer": Pair(partial(recipes.spherical, "layer"), algorithms.Spherical, ("ties",)),
    "soft": Pair(recipes.soft, algorithms.Soft, ("inverse_temperature",)),
    "trimmed": Pair(recipes.trimmed, algorithms.Trimmed, ("ties", "keep")),
    "robust": Pair(recipes.robust, algorithms.Robust, _ROBUST),
    "medoids": Pair(recipes.medoids, algorithms.Medoids, ("ties", "separation")),
    "soft_dot": Pair(recipes.soft_dot, algorithms.Soft, ("inverse_temperature",)),
    "robust_lifted": Pair(recipes.robust_lifted, partial(algorithms.Robust, lifted=True), _ROBUST),
    "lloyd_binary": Pair(recipes.lloyd_binary, algorithms.LloydBinary, ()),
    "trimmed_by_gamma": Pair(recipes.trimmed, algorithms.Trimmed, ("ties", "inverse_temperature")),
    # the stars of tab:comp-alg; those of soft and robust k-means with dot products are above
    "trimmed_dot": Pair(
        lambda **given: recipes.with_dot_products(recipes.trimmed(**given)),
        partial(algorithms.Trimmed, lifted=True),
        ("ties", "keep"),
    ),
    "medoids_dot": Pair(
        lambda **given: recipes.with_dot_products(recipes.medoids(**given)),
        partial(algorithms.Medoids, lifted=True),
        ("ties", "separation"),
    ),
    "robust_dot": Pair(
        lambda **given: recipes.with_dot_products(recipes.robust(**given)),
        partial(algorithms.Robust, lifted=True),
        _ROBUST,
    ),
    "spherical_soft": Pair(
        lambda **given: recipes.on_sphere(recipes.soft(**given)),
        algorithms.SphericalSoft,
        ("inverse_temperature",),
    ),
    "spherical_trimmed": Pair(
        lambda **given: recipes.on_sphere(recipes.trimmed(**given)),
        partial(algorithms.SphericalTrimmed, lifted=True),
        ("ties", "keep"),
    ),
    "spherical_robust": Pair(
        lambda **given: recipes.on_sphere(recipes.robust(**given)),
        partial(algorithms.SphericalRobust, lifted=True),
        _ROBUST,
    ),
    "spherical_medoids": Pair(
        lambda **given: recipes.on_sphere(recipes.medoids(**given)),
        partial(algorithms.SphericalMedoids, lifted=True),
        ("ties", "separation"),
    ),
}


def make_recipe(name: str, parameters: PairParameters | None = None) -> Recipe:
    """Return the recipe of this name in `PAIRS`, with these parameters or the default ones."""
    parameters = parameters or PairParameters()
    return PAIRS[name].recipe(**{key: getattr(parameters, key) for key in PAIRS[name].shared})


def make_algorithm(name: str, parameters: PairParameters) -> algorithms.Algorithm:
    """Return the algorithm that the recipe of this name must equal."""
    # circuits take their seed when they run
    used = (*PAIRS[name].shared, *(("seed",) if "medoids" in name else ()))
    return PAIRS[name].algorithm(**{key: getattr(parameters, key) for key in used})


def has_average_ties(name: str) -> bool:
    """Return whether the recipe can split tied points evenly."""
    return "ties" in PAIRS[name].shared


def is_spherical(name: str) -> bool:
    """Return whether the recipe needs unit vectors."""
    return make_recipe(name).norm is not None


def finds_points_by_dot_product(recipe: AnyRecipe) -> bool:
    """Return whether self-attention compares points by dot products, scaled or not.

    Those cannot tell near points apart (docs/errata.md, 8).
    """
    score = recipe.encoder_self.score if isinstance(recipe, Recipe) else None
    return isinstance(score.score if isinstance(score, Scaled) else score, DotProduct)


def known_algorithm(recipe: AnyRecipe, seed: int = 0) -> algorithms.Algorithm | StepFunction:
    """Return the algorithm that the recipe is named after, with the recipe's parameters.

    seed: of the noise, for algorithms that draw. Raises ValueError if none is known.
    """
    if recipe.name in PAIRS and isinstance(recipe, Recipe):
        return paired_algorithm(recipe, seed)
    if recipe.name == "symmetric" and isinstance(recipe, Recipe):
        return _soft_step(recipe)
    if recipe.name == "relocating":
        return _relocation_step(recipe, seed)
    if recipe.name == "medoids_swap":
        return _exchange_step(recipe, seed)
    # users may register algorithms of their own; only those with assign, weigh and place compare
    for known in ALGORITHMS.values():
        if known.recipe() == recipe and isinstance(known.oracle(), algorithms.Algorithm):
            return known.oracle()  # type: ignore[return-value]
    raise _unknown(recipe, "no algorithm of this name is known")


def paired_algorithm(recipe: Recipe, seed: int = 0) -> algorithms.Algorithm:
    """Return the algorithm of `PAIRS`; raise ValueError if the recipe lacks a parameter of it."""
    encoder, decoder = recipe.encoder_cross.activation, recipe.decoder_cross.activation
    separation = recipe.decoder_cross.separation
    temperatures = [getattr(part, "inverse_temperature", None) for part in (encoder, decoder)]
    read: dict[str, Any] = {
        "separation": NEVER if separation is None else separation,
        "ties": recipe.ties,
        "inverse_temperature": next((t for t in temperatures if t is not None), None),
        "keep": getattr(decoder, "keep", None),
    }
    if type(decoder) in (Sparsemax, Softmax):
        read["activation"] = type(decoder).__name__.lower()
    known = {name: value for name, value in read.items() if value is not None}
    for name in PAIRS[recipe.name].shared:
        if name not in known:
            raise _unknown(recipe, f"the parts of the recipe do not say its {name}")
    return make_algorithm(recipe.name, PairParameters(**known, seed=seed))


def _soft_step(recipe: Recipe) -> StepFunction:
    """Return a step of soft k-means, if that is what the numbers of the symmetric layer are."""
    numbers = recipe.numbers
    if not isinstance(numbers, Fixed) or numbers != Fixed(sharpness=numbers.sharpness[:1]):
        raise _unknown(recipe, "its numbers are not those of soft k-means")
    soft = algorithms.Soft(numbers.sharpness[0])

    def soft_kmeans_step(points: ndarray, centers: ndarray) -> ndarray:
        return algorithms.run(soft, points, centers, 1).centers[-1]

    return soft_kmeans_step


def _relocation_step(recipe: AnyRecipe, seed: int) -> StepFunction:
    """Return a relocation of the plain algorithm; its layers are numbered as the circuit's."""
    counts = getattr(recipe, "counts", None)
    if counts is None or recipe != recipes.relocating(counts.spares, counts.draws):
        raise _unknown(recipe, "only the numbers of moved centers and of draws may differ")
    plain = algorithms.Relocating(n_moved=counts.spares, n_draws=counts.draws, seed=seed)

    def relocation(points: ndarray, centers: ndarray, iteration: int) -> ndarray:
        return plain.relocate(points, centers, iteration * recipe.depth(len(centers)))

    relocation.seed = seed  # type: ignore[attr-defined]
    return relocation


def _exchange_step(recipe: AnyRecipe, seed: int) -> StepFunction:
    """Return an exchange of the plain search. Centers are rows without weight behind the points."""
    counts = getattr(recipe, "counts", None)
    if counts is None or recipe != recipes.medoids_swap(counts.draws):
        raise _unknown(recipe, "only the number of draws may differ")

    def exchange(points: ndarray, centers: ndarray, iteration: int) -> ndarray:
        # the search exchanges rows, and centers need not be points of the problem
        rows = np.concatenate([points, centers])
        weights = np.repeat([1.0, 0.0], [len(points), len(centers)])
        search = MedoidSearch(rows, weights=weights)
        search.begin(np.arange(len(points), len(rows)))
        layer = iteration * recipe.depth(len(centers))
        search.exchange_once(search.draw(seed, layer, counts.draws))
        return rows[search.medoids]

    exchange.seed = seed  # type: ignore[attr-defined]
    return exchange


def _unknown(recipe: AnyRecipe, reason: str) -> ValueError:
    return ValueError(
        f"algorithm: found None for the recipe {recipe.name!r}, and {reason}; pass a function "
        "step(points, centers) that returns the new centers, or an object with assign, weigh and "
        "place (lloydformer.algorithms.Algorithm)"
    )
