"""The menu of the explorer: for every slot the parts that one can choose, with their parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lloydformer.circuits.activations import (
    FirstOfEquals,
    Gumbel,
    Identity,
    LimitingSoftmax,
    Linear,
    NormMax,
    Ranked,
    Softmax,
    Sparsemax,
    TopK,
)
from lloydformer.circuits.feedforward import Quadratic
from lloydformer.circuits.norms import LayerNorm, RMSNorm
from lloydformer.circuits.projections import Projection, lifting, on, separated
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.recipes import MAKERS
from lloydformer.circuits.recipes.kmeans import LIFTED
from lloydformer.circuits.scores import DotProduct, Euclidean, Scaled
from lloydformer.circuits.serialise import serialise
from lloydformer.circuits.subspaces import ASSIGNMENT, POSITION
from lloydformer.circuits.tokens import Binary, lifted, lifted_with_affinity, plain

HEADS = {
    "encoder_cross": ("Encoder cross-attention", "Each point asks the centers."),
    "encoder_self": ("Encoder self-attention", "Each point asks itself and erases its old code."),
    "decoder_cross": ("Decoder cross-attention", "Each center asks the points."),
    "decoder_self": ("Decoder self-attention", "Each center asks itself and erases its place."),
}
"""The slots that hold a head: title, and what the head does in Lloyd's algorithm."""

SCORES = {
    "Squared distance": Euclidean(),
    "Dot product": DotProduct(),
    "Squared distance, scaled": Scaled(Euclidean()),
    "Dot product, scaled": Scaled(DotProduct()),
}
ACTIVATIONS = {
    "All weight on the best, shared among ties": LimitingSoftmax("average"),
    "All weight on the best, the first of ties": LimitingSoftmax("first"),
    "Soft-max": Softmax(1.0),
    "Linear": Linear(),
    "Sparsemax": Sparsemax(1.0),
    "Soft-max of the best m": TopK(5),
    "Equal weights, keep a fraction": NormMax(keep=0.9),
    "Equal weights, by temperature": NormMax(inverse_temperature=1.0),
    "Gumbel: draw one": Gumbel(),
    "The key of one rank": Ranked(1),
    "The first of almost equals": FirstOfEquals(),
    "The scores themselves": Identity(),
}
PROJECTIONS: dict[str, dict[str, Projection]] = {
    "query": {
        "Position": on(POSITION),
        "Code": on(ASSIGNMENT),
        "Lifted position": lifting(POSITION, ASSIGNMENT),
        "Nothing": Projection(()),
    },
    "key": {
        "Position": on(POSITION),
        "Code": on(ASSIGNMENT),
        "Lifted position": on(*LIFTED),
        "Nothing": Projection(()),
    },
    "value": {
        "Code": on(ASSIGNMENT),
        "Minus the code": -on(ASSIGNMENT),
        "Position": on(POSITION),
        "Minus the position": -on(POSITION),
        "Minus the lifted position": -on(*LIFTED),
        "Nothing": Projection(()),
    },
}
APART = {"Position and code, apart": on(POSITION) + separated(ASSIGNMENT)}
"""A query or key of the decoder that keeps clusters apart by the separation."""
OTHER_SLOTS: dict[str, dict[str, Any]] = {
    "tokens": {
        "Position and code": plain(),
        "Position and binary code": plain(Binary()),
        "Lifted position and code": lifted(),
        "Lifted, with affinity": lifted_with_affinity(),
    },
    "norm": {"None": None, "RMS norm": RMSNorm(), "Layer norm": LayerNorm()},
    "feedforward": {
        "None": None,
        "Quadratic": Quadratic(),
        "Quadratic, rectified": Quadratic("rectified"),
    },
}

PARAMETERS: dict[str, dict[str, Any]] = {
    "inverse_temperature": {"title": "Inverse temperature γ", "least": 1e-4, "most": 1e4,
                            "scale": "log"},
    "temperature": {"title": "Temperature λ", "least": 0.0, "most": 5.0, "scale": "linear"},
    "keep": {"title": "Fraction kept", "least": 0.05, "most": 1.0, "scale": "linear"},
    "separation": {"title": "Separation δ", "least": 0.0, "most": 1000.0, "scale": "linear",
                   "optional": True},
    "m": {"title": "Number of keys m", "least": 1, "most": 50, "scale": "integer"},
    "rank": {"title": "Rank", "least": 0, "most": 5, "scale": "integer"},
    "within": {"title": "Equal within", "least": 1e-12, "most": 0.5, "scale": "log"},
    "ties": {"title": "Ties", "choices": ["first", "average"]},
}  # fmt: skip
"""Fields that the page shows as sliders or choices, with their range."""


@dataclass(frozen=True)
class Choice:
    """A part, or None, that a slot of the menu offers."""

    title: str
    part: Any

    def as_json(self) -> dict[str, Any]:
        """Return the title, the part and its parameters."""
        return {
            "title": self.title,
            "part": serialise(self.part),
            "parameters": list(parameters(serialise(self.part))),
        }


def menu() -> list[dict[str, Any]]:
    """Return the slots in the order of the page, each with its choices."""
    heads = [
        {
            "slot": slot,
            "title": title,
            "says": says,
            "heads": [choice.as_json() for choice in shipped_heads(slot)],
            "parts": {name: _choices(options) for name, options in head_parts(slot).items()},
        }
        for slot, (title, says) in HEADS.items()
    ]
    return [
        *heads,
        *(
            {"slot": slot, "title": slot.capitalize(), "choices": _choices(options)}
            for slot, options in OTHER_SLOTS.items()
        ),
    ]


def head_parts(slot: str) -> dict[str, dict[str, Any]]:
    """Return the parts that can be chosen for each field of a slot's head."""
    more = APART if slot == "decoder_cross" else {}
    sides = {s: p | (more if s != "value" else {}) for s, p in PROJECTIONS.items()}
    return {"score": SCORES, "activation": ACTIVATIONS, **sides}


def shipped_heads(slot: str) -> Iterator[Choice]:
    """Yield the different heads that the recipes of the package have in a slot."""
    titles: dict[Any, list[str]] = {}
    for name, make in MAKERS.items():
        recipe = make()
        if isinstance(recipe, Recipe) and not (recipe.free or recipe.numbers):
            titles.setdefault(getattr(recipe, slot), []).append(name)
    for head, names in titles.items():
        yield Choice(", ".join(names), head)


def parameters(part: Any, path: str = "") -> Iterator[dict[str, Any]]:
    """Yield the parameters of a serialised part, with the path of each inside of it.

    The separation is a parameter of heads that use it; others are those that are set.
    """
    if not isinstance(part, dict):
        return
    for field, value in part.items():
        here = f"{path}{field}"
        if field in PARAMETERS and (value is not None or _uses_separation(part, field)):
            yield {"path": here, **PARAMETERS[field]}
        elif field not in ("beside", "sharpness"):
            yield from parameters(value, f"{here}.")


def _uses_separation(part: dict[str, Any], field: str) -> bool:
    sides = [part[side] for side in ("query", "key", "value")] if part["part"] == "Head" else []
    blocks = [block for side in sides for block in side.get("blocks", [])]
    return field == "separation" and any(block["power"] for block in blocks)


def _choices(options: dict[str, Any]) -> list[dict[str, Any]]:
    return [Choice(title, part).as_json() for title, part in options.items()]
