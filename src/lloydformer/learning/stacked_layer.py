"""Layers as functions of flat weights, a row for each run; tasks are (runs, tasks, ...).

`CircuitLayer` runs the circuit of any recipe, one run after the other. `StackedLayer` is the
equation of `Circuit` with `recipes.learned()`, arranged for speed: scores by one product of
matrices, all runs in one batched product.
"""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional as F

from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.gradients import NoGradientWarning
from lloydformer.circuits.outside import has_noise
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import DotProduct, Scaled, Score
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.circuits.tokens import Tokens
from lloydformer.fork_safety import cached_property
from lloydformer.learning.random_numbers import Dropout

# Upper bound of the scores in memory at a time, when no gradient is needed: 256 MiB in float32.
# 20,000 points have 400 million scores in encoder self-attention.
_CELLS = 1 << 26

_softmax = torch.ops.aten._softmax.out
_softmax_backward = torch.ops.aten._softmax_backward_data


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

    @property
    def draws(self) -> bool:
        """True if a training step draws random numbers of its own."""
        return self.recipe.encoder_cross.dropout > 0

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
    """The layer of any recipe: circuits, one run after the other.

    A plain version of `StackedLayer`, for recipes with constructed weights, and for those with
    free ones that `lf.recipes.learned` does not make: other scores or activations, a norm, a
    network, noise. Tokens are embedded again before each step.
    """

    def __post_init__(self) -> None:
        if self.recipe.norm is not None and not self.recipe.free:
            raise ValueError(
                f"recipe: found {self.recipe.name!r}, which needs unit vectors, and those of the "
                "tasks are not; train one without a norm, or one with free weights"
            )

    @cached_property
    def draws(self) -> bool:
        return has_noise(self.recipe) or any(h.dropout for h in self.recipe.heads.values())

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
        """Return the centers after one step; without `dropout` the noise depends on depth alone."""
        named, noisy = self.named(weights), has_noise(self.recipe)
        seeds = [depth] * len(weights) if dropout is None else dropout.seeds_of(depth)
        moved = []
        for run, seed in enumerate(seeds):
            own = {name: part[run] for name, part in named.items()}
            options = {"n_layers": 1, "seed": seed if noisy else None}
            with _training(self._circuit, seed, points.device, active=dropout is not None):
                inputs = (points[run], centers[run])
                trace = functional_call(self._circuit, own, inputs, options)
            moved.append(trace.centers[:, -1])
        return torch.stack(moved)


@contextmanager
def _training(circuit: Circuit, seed: int, device: torch.device, active: bool) -> Iterator[None]:
    """Switch dropout on in this block, with random numbers that depend on the seed alone."""
    if not active:
        yield
        return
    # torch's dropout draws from the global generator, which is left as it was
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        circuit.train()
        try:
            yield
        finally:
            circuit.eval()


class DropoutAttention(torch.autograd.Function):
    r"""$\mathrm{drop}(\sigma(Q K^\top))\, V$, with dropped weights given by their flat indices.

    An index one past the last weight is padding: the buffer of weights has one extra entry for
    it. Autograd's own version would copy the weights twice more.
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries: Float[Tensor, "b q e"],
        keys: Float[Tensor, "b m e"],
        values: Float[Tensor, "b m f"],
        dropped: Int[Tensor, " p"] | None,
    ) -> Float[Tensor, "b q f"]:
        scores = queries @ keys.mT
        flat, weights = _padded_buffer(scores)
        _softmax(scores, -1, False, out=weights)
        removed = None
        if dropped is not None:
            removed = flat[dropped]
            flat.index_fill_(0, dropped, 0.0)
        ctx.save_for_backward(queries, keys, values, dropped, removed)
        # Not saved for backward: `backward` changes it in place, which autograd would refuse,
        # and changes it back.
        ctx.flat = flat
        return weights @ values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        queries, keys, values, dropped, removed = ctx.saved_tensors
        flat: Tensor = ctx.flat
        weights = flat[:-1].view(*queries.shape[:2], keys.shape[1])
        by_values = weights.mT @ gradients[0]
        flat_gradient, gradient = _padded_buffer(weights)
        torch.bmm(gradients[0], values.mT, out=gradient)
        if dropped is not None:
            flat_gradient.index_fill_(0, dropped, 0.0)
            flat[dropped] = removed  # the softmax came before the dropout
        by_scores = _softmax_backward(gradient, weights, -1, weights.dtype)
        if dropped is not None:
            flat.index_fill_(0, dropped, 0.0)
        return by_scores @ keys, by_scores.mT @ queries, by_values, None


def _padded_buffer(like: Tensor) -> tuple[Tensor, Tensor]:
    """Allocate one entry more than `like` has: the flat buffer, and its view in that shape."""
    flat = like.new_empty(like.numel() + 1)
    return flat, flat[:-1].view(like.shape)


# `apply` has no types in torch
_dropout_attention: Callable[..., Tensor] = DropoutAttention.apply


def drop_weights(weights: Tensor, dropped: Int[Tensor, " p"]) -> Tensor:
    """Return a copy with 0 at some flat indices; an index one past the end is padding."""
    flat = F.pad(weights.flatten(), (0, 1)).index_fill(0, dropped, 0.0)
    return flat[:-1].view_as(weights)


@dataclass(frozen=True)
class StackedHeads:
    """The projections and heads of a learned recipe, for one pass through the layer.

    `weights`: by name, each (r, *shape). `dropped`: flat indices by slot, or None for no dropout.
    """

    recipe: Recipe
    weights: dict[str, Tensor]
    dropped: dict[str, Tensor] | None

    def project(
        self, tokens: Float[Tensor, "r b m e"], *names: str
    ) -> tuple[Float[Tensor, "r b m e"], ...]:
        """Multiply the tokens by several matrices of each run.

        The matrices are expanded to every task. Their gradient is then many products of moderate
        length and a sum, instead of one very long product that few processors can share.
        """
        tasks = tokens.shape[1]
        matrix = torch.cat([self.weights[f"layers.0.{name}"] for name in names], dim=1).mT
        matrices = matrix.unsqueeze(1).expand(-1, tasks, -1, -1).flatten(0, 1)
        rows = tokens.flatten(0, 1)
        if self.recipe.encoder_self.query == Dense(bias=True):
            bias = torch.cat([self.weights[f"layers.0.{name}_bias"] for name in names], dim=1)
            shift = bias[:, None, None].expand(-1, tasks, 1, -1).flatten(0, 1)
            products = torch.baddbmm(shift, rows, matrices)
        else:
            products = torch.bmm(rows, matrices)
        return torch.split(products.view(*tokens.shape[:3], -1), tokens.shape[3], dim=-1)

    def __call__(
        self, slot: str, queries: Tensor, keys: Tensor, values: Tensor
    ) -> Float[Tensor, "r b q e"]:
        """Return the output of the head in a slot."""
        head, shape = self.recipe.heads[slot], queries.shape
        scale = queries.shape[-1] ** -0.5 if isinstance(head.score, Scaled) else 1.0
        k, v = keys.flatten(0, 1), values.flatten(0, 1)
        if is_dot_product(head.score):
            q = scale * queries.flatten(0, 1)
        else:
            q, k = _lift(queries.flatten(0, 1), k, scale)
        dropped = self.dropped[slot] if self.dropped is not None else None
        if not torch.is_grad_enabled() and dropped is None:
            rows = max(1, _CELLS // max(1, k.shape[:2].numel()))
            parts = [head.activation(part @ k.mT) @ v for part in torch.split(q, rows, dim=1)]
            return torch.cat(parts, dim=1).view(shape)
        if head.activation == Softmax():
            output = _dropout_attention(q, k, v, dropped)
        else:
            weights = head.activation(q @ k.mT)
            output = (weights if dropped is None else drop_weights(weights, dropped)) @ v
        output = output.view(shape)
        # the weights that stay are raised, so that their mean is the same as without dropout
        return output if dropped is None else output / (1 - head.dropout)


def _lift(queries: Tensor, keys: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Return queries and keys whose dot products are -scale |q - k|^2, up to a constant of q.

    Neither softmax nor sparsemax depends on that constant: (2 scale q, -scale) times (k, |k|^2).
    """
    lifted = torch.cat([keys, keys.square().sum(dim=-1, keepdim=True)], dim=-1)
    return F.pad(2 * scale * queries, (0, 1), value=-scale), lifted


def is_dot_product(score: Score) -> bool:
    """Return whether a score is a dot product, scaled or not."""
    return isinstance(score.score if isinstance(score, Scaled) else score, DotProduct)


@dataclass(frozen=True)
class StackedLayer(FlatLayer):
    """The layer of a learned recipe as a function of flat weights, one row for each run."""

    capturable: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.recipe.free or not self.recipe.embeds_again:
            raise ValueError(
                f"recipe: found {self.recipe.name!r}; a stacked layer needs lf.recipes.learned()"
            )

    def __call__(
        self,
        weights: Float[Tensor, "r p"],
        points: Float[Tensor, "r b n d"],
        centers: Float[Tensor, "r b k d"],
        dropout: Dropout | None = None,
        depth: int = 0,
    ) -> Float[Tensor, "r b k d"]:
        """Return the centers after one step. `depth`: number of the unrolled layer."""
        (_, tasks, n, _), k = points.shape, centers.shape[2]
        x = F.pad(points, (0, self.dim - self.n_features))
        codes = _codes(self.recipe.tokens, k, centers.device, centers.dtype)
        c = torch.cat([centers, codes.expand(*centers.shape[:3], -1)], dim=-1)
        dropped = None
        if dropout is not None:
            scores = {
                "encoder_cross": n * k,
                "encoder_self": n * n,
                "decoder_cross": k * n,
                "decoder_self": k * k,
            }
            dropped = dropout.indices({slot: tasks * m for slot, m in scores.items()}, depth)
        heads = StackedHeads(self.recipe, self.named(weights), dropped)
        # All projections of the same tokens are one product of matrices: the encoder's heads read
        # the points as they are before the layer, and the decoder's keys those after it.
        q1, k1, v1, q0 = heads.project(
            x, "encoder_self.query", "encoder_self.key", "encoder_self.value", "encoder_cross.query"
        )
        k0, v0, q2, q3, k3, v3 = heads.project(
            c,
            "encoder_cross.key",
            "encoder_cross.value",
            "decoder_cross.query",
            "decoder_self.query",
            "decoder_self.key",
            "decoder_self.value",
        )
        x = x + heads("encoder_self", q1, k1, v1) + heads("encoder_cross", q0, k0, v0)
        k2, v2 = heads.project(x, "decoder_cross.key", "decoder_cross.value")
        c = c + heads("decoder_self", q3, k3, v3) + heads("decoder_cross", q2, k2, v2)
        return c[..., : self.n_features]


@cache
def _codes(
    tokens: Tokens, n_clusters: int, device: torch.device, dtype: torch.dtype
) -> Float[Tensor, "k m"]:
    """Return the codes of the clusters, cached: a captured CUDA graph cannot copy from the host."""
    table = tokens.codes.table(n_clusters)
    return (table if ASSIGNMENT in tokens.subspaces else table[:, :0]).to(device, dtype)
