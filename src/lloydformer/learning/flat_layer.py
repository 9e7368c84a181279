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
from torch.func import functional_call

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.circuits.outside import has_noise
from lloydformer.circuits.recipe import Recipe
from lloydformer.learning.random_numbers import Dropout


@dataclass(frozen=True)
class FlatLayer(ABC):
    """The layer of a recipe for many runs at once; subclasses differ in how they compute it.

    Attributes
    ----------
    recipe : Recipe
        The recipe of the layer.
    n_features, n_clusters : int
        Sizes of the layer.
    capturable : bool
        True if a call can be captured as a CUDA graph: it reads no numbers on the host.
    """

    recipe: Recipe
    n_features: int
    n_clusters: int
    capturable: ClassVar[bool] = False

    @cached_property
    def dim(self) -> int:
        """Dimension of the tokens."""
        return self.recipe.tokens.space(self.n_features, self.n_clusters).dim

    @cached_property
    def shapes(self) -> dict[str, torch.Size]:
        """Name and shape of each weight, in the order of the flat rows."""
        return {name: weight.shape for name, weight in self.circuit(0).named_parameters()}

    def circuit(self, seed: int) -> Circuit:
        """Return an untrained circuit of the same recipe and sizes."""
        with warnings.catch_warnings():
            # `train` warns once; this method runs for every seed and every card
            warnings.simplefilter("ignore", NoGradientWarning)
            return Circuit(self.recipe, self.n_features, self.n_clusters, True, seed)

    def circuit_of(self, weights: Float[Tensor, " p"]) -> Circuit:
        """Return a circuit with the weights of a run, in evaluation mode."""
        circuit = self.circuit(0)
        given = {name: part[0] for name, part in self.named(weights[None]).items()}
        # what is not trained (constructed buffers) stays as the circuit has it
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


@dataclass(frozen=True)
class CircuitLayer(FlatLayer):
    """The layer of any recipe that needs no noise: circuits, one run after the other.

    A plain version beside `StackedLayer`, for recipes with constructed weights. Tokens are
    embedded again before each step. Dropout is not supported.
    """

    def __post_init__(self) -> None:
        if self.recipe.norm is not None:
            reason = "needs unit vectors, and those of the tasks are not; train one without a norm"
        elif has_noise(self.recipe):
            reason = "draws noise, and training gives it none; train a recipe that does not draw"
        else:
            return
        raise ValueError(f"recipe: found {self.recipe.name!r}, which {reason}")

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
        moved = []
        for run in range(len(weights)):
            own = {name: part[run] for name, part in named.items()}
            inputs = (points[run], centers[run])
            trace = functional_call(self._circuit, own, inputs, {"n_layers": 1})
            moved.append(trace.centers[:, -1])
        return torch.stack(moved)
