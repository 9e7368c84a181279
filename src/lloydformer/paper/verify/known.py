"""The plain algorithm that a recipe of the package, or a variant of it, is meant to be."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy import ndarray

from lloydformer import algorithms
from lloydformer.algorithms.medoid_distances import PointDistances
from lloydformer.algorithms.medoid_search import MedoidSearch
from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Softmax, Sparsemax
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.symmetric import Fixed
from lloydformer.estimators import ALGORITHMS
from lloydformer.verify.pairs import PAIRS, PairParameters
from lloydformer.verify.user_algorithm import StepFunction

NEVER = 1e8
"""Separation of medoids if the recipe leaves it open: no point of another cluster is drawn."""


def known_algorithm(recipe: AnyRecipe, seed: int = 0) -> algorithms.Algorithm | StepFunction:
    """Return the algorithm that the recipe's name stands for, with the recipe's parameters.

    seed: of the noise, for algorithms that draw. Raises ValueError if none is known.
    """
    if recipe.name in PAIRS and isinstance(recipe, Recipe):
        return paired_algorithm(recipe, seed)
    if recipe.name == "symmetric" and isinstance(recipe, Recipe):
        return _soft_step(recipe)
    if recipe.name == "relocating":
        return _relocation(recipe, seed)
    if recipe.name == "medoids_swap":
        return _exchange(recipe, seed)
    for known in ALGORITHMS.values():
        if known.recipe() == recipe and isinstance(known.oracle(), algorithms.Algorithm):
            return known.oracle()  # type: ignore[return-value]
    raise _unknown(recipe, "no algorithm of this name is known")


def paired_algorithm(recipe: Recipe, seed: int = 0) -> algorithms.Algorithm:
    """Return the algorithm of `PAIRS`; refuse if it needs a parameter that the recipe lacks."""
    read = _read(recipe)
    parameters, make = PairParameters(**read, seed=seed), PAIRS[recipe.name][1]
    other = PairParameters("average", 2.0, 0.5, 1.0, "softmax", seed)
    for name in (f.name for f in fields(other) if f.name not in (*read, "seed")):
        if make(replace(parameters, **{name: getattr(other, name)})) != make(parameters):
            raise _unknown(recipe, f"the parts of the recipe do not say its {name}")
    return make(parameters)


def _read(recipe: Recipe) -> dict[str, Any]:
    """Return the parameters that the recipe's parts have."""
    encoder, decoder = recipe.encoder_cross.activation, recipe.decoder_cross.activation
    open_ = recipe.decoder_cross.separation is None
    found: dict[str, Any] = {"separation": NEVER if open_ else recipe.decoder_cross.separation}
    temperatures = [getattr(part, "inverse_temperature", None) for part in (encoder, decoder)]
    values = {
        "ties": recipe.ties,
        "inverse_temperature": next((t for t in temperatures if t is not None), None),
        "keep": getattr(decoder, "keep", None),
    }
    found |= {name: value for name, value in values.items() if value is not None}
    if type(decoder) in (Sparsemax, Softmax):
        found["activation"] = type(decoder).__name__.lower()
    return found


def _soft_step(recipe: Recipe) -> StepFunction:
    """Return a step of soft k-means, if that is what the numbers of the symmetric layer are."""
    numbers = recipe.numbers
    if not isinstance(numbers, Fixed) or numbers != Fixed(sharpness=numbers.sharpness[:1]):
        raise _unknown(recipe, "its numbers are not those of soft k-means")
    soft = algorithms.Soft(numbers.sharpness[0])

    def soft_kmeans_step(points: ndarray, centers: ndarray) -> ndarray:
        return algorithms.run(soft, points, centers, 1).centers[-1]

    return soft_kmeans_step


def _relocation(recipe: AnyRecipe, seed: int) -> StepFunction:
    """Return a relocation of the plain algorithm; its layers are numbered as the circuit's."""
    counts = getattr(recipe, "counts", None)
    if counts is None or recipe != recipes.relocating(counts.spares, counts.draws):
        raise _unknown(recipe, "only the numbers of moved centers and of draws may differ")
    plain = algorithms.Relocating(n_moved=counts.spares, n_draws=counts.draws, seed=seed)

    def relocation(points: ndarray, centers: ndarray, iteration: int) -> ndarray:
        return plain.relocated(points, centers, iteration * recipe.depth(len(centers)))

    relocation.seed = seed  # type: ignore[attr-defined]
    return relocation


def _exchange(recipe: AnyRecipe, seed: int) -> StepFunction:
    """Return an exchange of the plain search. Centers are rows without weight behind the points."""
    counts = getattr(recipe, "counts", None)
    if counts is None or recipe != recipes.medoids_swap(counts.draws):
        raise _unknown(recipe, "only the number of draws may differ")

    def exchange(points: ndarray, centers: ndarray, iteration: int) -> ndarray:
        rows = np.concatenate([points, centers])
        weights = np.repeat([1.0, 0.0], [len(points), len(centers)])
        search = MedoidSearch(PointDistances(rows), weights)
        search.begin(np.arange(len(points), len(rows)))
        layer = iteration * recipe.depth(len(centers))
        search.exchange_once(search.drawn(seed, layer, counts.draws))
        return rows[search.medoids]

    exchange.seed = seed  # type: ignore[attr-defined]
    return exchange


def _unknown(recipe: AnyRecipe, reason: str) -> ValueError:
    return ValueError(
        f"algorithm: found None for the recipe {recipe.name!r}, and {reason}; pass a function "
        "step(points, centers) that returns the new centers, or an object with assign, weigh and "
        "place (lloydformer.algorithms.Algorithm)"
    )
