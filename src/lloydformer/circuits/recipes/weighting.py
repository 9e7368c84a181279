"""The activation of a head, chosen by a word or given as a part."""

from dataclasses import replace
from typing import Literal

from lloydformer.circuits.activations import Activation, Softmax, Sparsemax, TopK

Weighting = Literal["sparsemax", "softmax"]
"""Names of activations that weigh keys by their scores."""


def weighting(activation: Weighting | TopK, inverse_temperature: float) -> Activation:
    """Return the named activation, or the given `TopK`, with this inverse temperature."""
    if isinstance(activation, TopK):
        if activation.inverse_temperature not in (1.0, inverse_temperature):
            raise ValueError(
                f"activation: found {activation!r}; give its temperature as inverse_temperature="
            )
        return replace(activation, inverse_temperature=inverse_temperature)
    kinds: dict[str, type[Sparsemax | Softmax]] = {"sparsemax": Sparsemax, "softmax": Softmax}
    if not isinstance(activation, str) or activation not in kinds:
        raise ValueError(
            f'activation: found {activation!r}; pass "sparsemax", "softmax" or TopK(m)'
        )
    return kinds[activation](inverse_temperature)
