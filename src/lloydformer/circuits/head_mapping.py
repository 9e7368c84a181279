"""The same change to every head of a recipe."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from lloydformer.circuits.heads import Head
from lloydformer.circuits.stages import AnyRecipe, Stage, Staged, Sublayer

R = TypeVar("R", bound=AnyRecipe)
Change = Callable[[str, Head], Head]
"""Takes the slot of a head, or the name of its stage, and the head; returns the new head."""


def map_heads(recipe: R, change: Change) -> R:
    """Return the recipe with every head changed, also those that share a slot."""
    if isinstance(recipe, Staged):
        return replace(
            recipe, sublayers=tuple(_sublayer(part, change) for part in recipe.sublayers)
        )
    slots: dict[str, Any] = {
        slot: _slot(slot, getattr(recipe, slot), change) for slot in recipe.slots
    }
    return replace(recipe, **slots)


def _slot(slot: str, head: Head, change: Change) -> Head:
    return replace(change(slot, head), beside=tuple(change(slot, one) for one in head.beside))


def _sublayer(part: Sublayer, change: Change) -> Sublayer:
    return replace(part, stages=tuple(_stage(stage, change) for stage in part.stages))


def _stage(stage: Stage, change: Change) -> Stage:
    reads = tuple(replace(read, head=change(stage.name, read.head)) for read in stage.reads)
    return replace(stage, reads=reads)
