"""Which plain algorithm each recipe must equal, with the same parameters."""

from collections.abc import Callable
from dataclasses import dataclass

from lloydformer import algorithms
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Ties
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes.weighting import Weighting
from lloydformer.circuits.scores import DotProduct, Scaled
from lloydformer.circuits.stages import AnyRecipe


@dataclass(frozen=True)
class PairParameters:
    """Parameters that a recipe and its algorithm share; each pair uses some of them."""

    ties: Ties = "first"
    inverse_temperature: float = 1.0
    keep: float = 0.95
    separation: float = 100.0
    activation: Weighting = "sparsemax"
    seed: int = 0


RecipeMaker = Callable[[PairParameters], Recipe]
AlgorithmMaker = Callable[[PairParameters], algorithms.Algorithm]

PAIRS: dict[str, tuple[RecipeMaker, AlgorithmMaker]] = {
    "lloyd": (lambda p: recipes.lloyd(p.ties), lambda p: algorithms.Lloyd(p.ties)),
    "lloyd_dot": (lambda p: recipes.lloyd_dot(p.ties), lambda p: algorithms.Lloyd(p.ties)),
    "spherical": (
        lambda p: recipes.spherical("rms", p.ties),
        lambda p: algorithms.Spherical(p.ties),
    ),
    "spherical_layer": (
        lambda p: recipes.spherical("layer", p.ties),
        lambda p: algorithms.Spherical(p.ties),
    ),
    "soft": (
        lambda p: recipes.soft(p.inverse_temperature),
        lambda p: algorithms.Soft(p.inverse_temperature),
    ),
    "trimmed": (
        lambda p: recipes.trimmed(p.keep, ties=p.ties),
        lambda p: algorithms.Trimmed(p.ties, p.keep),
    ),
    "robust": (
        lambda p: recipes.robust(p.inverse_temperature, p.activation, ties=p.ties),
        lambda p: algorithms.Robust(p.ties, p.inverse_temperature, p.activation),
    ),
    "medoids": (
        lambda p: recipes.medoids(p.separation, p.ties),
        lambda p: algorithms.Medoids(p.ties, p.separation, p.seed),
    ),
    "soft_dot": (
        lambda p: recipes.soft_dot(p.inverse_temperature),
        lambda p: algorithms.Soft(p.inverse_temperature),
    ),
    "robust_lifted": (
        lambda p: recipes.robust_lifted(p.inverse_temperature, p.activation, ties=p.ties),
        lambda p: algorithms.Robust(p.ties, p.inverse_temperature, p.activation, lifted=True),
    ),
    "lloyd_binary": (lambda p: recipes.lloyd_binary(), lambda p: algorithms.LloydBinary()),
}
"""Makers of a recipe and of the algorithm that it must equal; spherical with either norm."""


def has_average_ties(name: str) -> bool:
    """Can the recipe split tied points evenly?"""
    return PAIRS[name][0](PairParameters(ties="average")).ties == "average"


def is_spherical(name: str) -> bool:
    """Does the recipe need unit vectors?"""
    return PAIRS[name][0](PairParameters()).norm is not None


def needs_zero_sum(name: str) -> bool:
    """Does the recipe need points whose coordinates sum to zero?"""
    norm = PAIRS[name][0](PairParameters()).norm
    return norm is not None and norm.zero_sum


def is_by_dot_product(name: str) -> bool:
    """Do points find themselves by dot products, which cannot tell near points apart?"""
    return finds_points_by_dot_product(PAIRS[name][0](PairParameters()))


def finds_points_by_dot_product(recipe: AnyRecipe) -> bool:
    """Does the encoder's self-attention compare points by dot products, scaled or not?"""
    score = recipe.encoder_self.score if isinstance(recipe, Recipe) else None
    return isinstance(score.score if isinstance(score, Scaled) else score, DotProduct)
