"""The options of a learned recipe, as the fields of settings."""

from typing import Any, Literal

from lloydformer.circuits import recipes
from lloydformer.circuits.activations import Sparsemax
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import Scaled

CODES: dict[str | None, Literal["onehot", "binary"] | None] = {
    "onehot": "onehot", "binary": "binary", None: None,
}  # fmt: skip
ACTIVATIONS: dict[str, Literal["softmax", "sparsemax"]] = {
    "softmax": "softmax", "sparsemax": "sparsemax",
}  # fmt: skip


def learned_fields(recipe: Recipe) -> dict[str, Any]:
    """Return the arguments of `lf.recipes.learned` that make this recipe, and no `base`.

    Raises ValueError for a recipe with other free weights.
    """
    head = recipe.encoder_cross
    kinds = {recipes.learned(codes).tokens: codes for codes in CODES.values()}
    found: dict[str, Any] = {
        "codes": kinds.get(recipe.tokens),
        "bias": isinstance(head.query, Dense) and head.query.bias,
        "scaled": isinstance(head.score, Scaled),
        "activation": "sparsemax" if isinstance(head.activation, Sparsemax) else "softmax",
        "dropout": head.dropout,
    }
    if recipes.learned(**found) != recipe:
        raise ValueError(
            f"recipe: found {recipe.name!r} with free weights that is not one of "
            "lf.recipes.learned(); pass one of them, or a recipe with constructed weights"
        )
    return {**found, "base": None}
