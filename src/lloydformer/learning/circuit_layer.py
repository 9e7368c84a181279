"""The layer of a constructed recipe, trained from its weights: circuits, one run at a time."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor
from torch.func import functional_call

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.outside import draws_noise
from lloydformer.learning.dropout import Dropout
from lloydformer.learning.flat_layer import FlatLayer


@dataclass(frozen=True)
class CircuitLayer(FlatLayer):
    """The layer of any recipe that needs no noise, as a function of flat weights.

    A plain version beside `StackedLayer`, for recipes with constructed weights. Tokens are
    embedded again before each step. Dropout is not supported.
    """

    def __post_init__(self) -> None:
        if reason := self._unsuitable():
            raise ValueError(f"recipe: found {self.recipe.name!r}, which {reason}")

    def _unsuitable(self) -> str:
        """Return why the recipe cannot be trained on tasks; an empty text if it can."""
        if self.recipe.norm is not None:
            return "needs unit vectors, and those of the tasks are not; train one without a norm"
        if draws_noise(self.recipe):
            return "draws noise, and training gives it none; train a recipe that does not draw"
        return ""

    @cached_property
    def _circuit(self) -> Circuit:
        return self.circuit(0).eval()

    def __call__(
        self,
        weights: Float[Tensor, "r p"],
        points: Float[Tensor, "r b n d"],
        centers: Float[Tensor, "r b k d"],
        dropout: Dropout | None = None,
        depth: int = 0,
    ) -> Float[Tensor, "r b k d"]:
        """Return the centers after one step."""
        named = self.named(weights)
        runs = [
            functional_call(self._circuit, {n: part[run] for n, part in named.items()},
                            (points[run], centers[run]), {"n_layers": 1}).centers[:, -1]
            for run in range(len(weights))
        ]  # fmt: skip
        return torch.stack(runs)
