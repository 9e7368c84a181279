"""The schedule of a circuit: the recipes of its layers, repeated in order."""

from lloydformer.circuits.stages import AnyRecipe


def as_schedule(recipe: object) -> tuple[AnyRecipe, ...]:
    """Return the recipes of a schedule; raise ValueError if they cannot run in one circuit.

    recipe: one recipe, or a list or tuple of recipes with the same tokens.
    """
    schedule = tuple(recipe) if isinstance(recipe, (list, tuple)) else (recipe,)
    if not schedule or not all(isinstance(r, AnyRecipe) for r in schedule):
        raise ValueError(f"recipe: found {recipe!r}; pass a recipe, for example lf.recipes.lloyd()")
    if len({r.tokens for r in schedule}) > 1:
        found = "; ".join(f"{r.name} has {_subspaces(r)}" for r in dict.fromkeys(schedule))
        raise ValueError(
            f"recipe: a schedule needs recipes with the same tokens; found several: {found}"
        )
    return schedule


def _subspaces(recipe: AnyRecipe) -> str:
    codes = type(recipe.tokens.codes).__name__
    return f"{', '.join(s.name for s in recipe.tokens.subspaces)} ({codes})"
