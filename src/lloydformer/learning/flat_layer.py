"""A layer as a function of flat weights: one row of numbers for each run."""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.circuits.recipe import Recipe
from lloydformer.learning.dropout import Dropout


@dataclass(frozen=True)
class FlatLayer(ABC):
    """The layer of a recipe for many runs at once; subclasses differ in how they compute it."""

    recipe: Recipe
    n_features: int
    n_clusters: int
    capturable: ClassVar[bool] = False
    """Whether a call can be captured as a CUDA graph: it reads no numbers on the host."""

    @cached_property
    def dim(self) -> int:
        """Dimension of the tokens."""
        return self.recipe.tokens.space(self.n_features, self.n_clusters).dim

    @cached_property
    def shapes(self) -> dict[str, torch.Size]:
        """Name and shape of each weight, in the order of the flat rows."""
        return {name: weight.shape for name, weight in self.circuit(0).named_parameters()}

    def circuit(self, seed: int) -> Circuit:
        """Return an untrained circuit of the same recipe and sizes; `train` gives its warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoGradientWarning)
            return Circuit(self.recipe, self.n_features, self.n_clusters, True, seed)

    def circuit_of(self, weights: Float[Tensor, " p"]) -> Circuit:
        """Return a circuit with the weights of a run, in evaluation mode."""
        circuit = self.circuit(0)
        given = {name: part[0] for name, part in self.named(weights[None]).items()}
        circuit.load_state_dict({**circuit.state_dict(), **given})
        return circuit.eval()

    def begin(self, seeds: list[int]) -> Float[Tensor, "r p"]:
        """Return the weights of untrained circuits with these seeds."""
        rows = [[w.detach().flatten() for w in self.circuit(seed).parameters()] for seed in seeds]
        return torch.stack([torch.cat(row) for row in rows])

    def named(self, weights: Float[Tensor, "r p"]) -> dict[str, Tensor]:
        """Return views of the weights by name, each (r, *shape)."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        parts = torch.split(weights, sizes, dim=1)
        return {
            name: part.reshape(len(weights), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    @abstractmethod
    def __call__(
        self,
        weights: Float[Tensor, "r p"],
        points: Float[Tensor, "r b n d"],
        centers: Float[Tensor, "r b k d"],
        dropout: Dropout | None = None,
        depth: int = 0,
    ) -> Float[Tensor, "r b k d"]:
        """Return the centers after one step. `depth`: number of the unrolled layer."""
