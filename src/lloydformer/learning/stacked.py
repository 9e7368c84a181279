"""The learned layer of many runs at once: parameters (runs, ...), tasks (runs, tasks, ...).

The same equation as `Circuit` with `recipes.learned()`, arranged for speed: scores by one product
of matrices, all runs in one batch of products.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from lloydformer.circuits.activations import Activation, Softmax
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import Scaled
from lloydformer.circuits.subspaces import ASSIGNMENT
from lloydformer.circuits.tokens import Tokens
from lloydformer.learning.attention import Attended, Dropped
from lloydformer.learning.draws import chosen, keys, n_gaps, uniform

_attended: Callable[..., Tensor] = Attended.apply
_dropped: Callable[..., Tensor] = Dropped.apply
_CELLS = 1 << 26
"""Scores that exist at a time where no gradient is wanted."""


@dataclass(frozen=True)
class Drops:
    """Which attention weights are dropped in a training step."""

    seeds: Int[Tensor, " r"]
    step: Int[Tensor, ""]
    share: float

    def places(self, shapes: dict[str, tuple[int, ...]], depth: int) -> dict[str, Tensor]:
        """For each slot, with weights (r, b, q, m), what falls there, as places in all of it.

        One draw serves all slots; the place after the last weight stands for none.
        """
        cells = {slot: math.prod(shape[1:]) for slot, shape in shapes.items()}
        counts = [n_gaps(n, self.share) for n in cells.values()]
        u = uniform(keys(self.seeds, "drops", self.step) + depth, sum(counts))
        parts = dict(zip(cells, torch.split(u, counts, dim=1), strict=True))
        return {slot: self._placed(parts[slot], n) for slot, n in cells.items()}

    def _placed(self, u: Float[Tensor, "r m"], cells: int) -> Int[Tensor, " all"]:
        which, runs = chosen(u, cells, self.share), len(self.seeds)
        offsets = torch.arange(runs, device=which.device)[:, None] * cells
        return torch.where(which < cells, which + offsets, runs * cells).flatten()


@dataclass(frozen=True)
class StackedLayer:
    """The layer of a learned recipe as a function of flat weights, one row for each run."""

    recipe: Recipe
    n_features: int
    n_clusters: int

    def __post_init__(self) -> None:
        if not self.recipe.free or not self.recipe.embeds_again:
            raise ValueError(
                f"recipe: found {self.recipe.name!r}; stacks are of lf.recipes.learned() only"
            )

    @cached_property
    def shapes(self) -> dict[str, torch.Size]:
        """Name and shape of each weight, in the order in which a row holds them."""
        return {name: weight.shape for name, weight in self.circuit(0).named_parameters()}

    def circuit(self, seed: int) -> Circuit:
        return Circuit(self.recipe, self.n_features, self.n_clusters, trainable=True, seed=seed)

    def begin(self, seeds: list[int]) -> Float[Tensor, "r p"]:
        """The weights of untrained circuits with these seeds."""
        rows = [[w.detach().flatten() for w in self.circuit(seed).parameters()] for seed in seeds]
        return torch.stack([torch.cat(row) for row in rows])

    def named(self, weights: Float[Tensor, "r p"]) -> dict[str, Tensor]:
        """Views of the weights by name, each (r, *its shape)."""
        sizes = [math.prod(shape) for shape in self.shapes.values()]
        parts = torch.split(weights, sizes, dim=1)
        return {
            name: part.reshape(-1, *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def __call__(
        self,
        weights: Float[Tensor, "r p"],
        points: Float[Tensor, "r b n d"],
        centers: Float[Tensor, "r b k d"],
        drops: Drops | None = None,
        depth: int = 0,
    ) -> Float[Tensor, "r b k d"]:
        """The centers after one step."""
        x = F.pad(points, (0, self.dim - self.n_features))
        names = _names(self.recipe.tokens, centers.shape[2], centers.device, centers.dtype)
        c = torch.cat([centers, names.expand(*centers.shape[:3], -1)], dim=-1)
        run = _Pass(self.recipe, self.named(weights), self._places(x, c, drops, depth))
        # what one kind of token is projected to is one product of matrices
        q1, k1, v1, q0 = run.projected(
            x, "encoder_self.query", "encoder_self.key", "encoder_self.value", "encoder_cross.query"
        )
        k0, v0, q2, q3, k3, v3 = run.projected(
            c, "encoder_cross.key", "encoder_cross.value", "decoder_cross.query",
            "decoder_self.query", "decoder_self.key", "decoder_self.value",
        )  # fmt: skip
        x = x + run("encoder_self", q1, k1, v1) + run("encoder_cross", q0, k0, v0)
        k2, v2 = run.projected(x, "decoder_cross.key", "decoder_cross.value")
        c = c + run("decoder_self", q3, k3, v3) + run("decoder_cross", q2, k2, v2)
        return c[..., : self.n_features]

    @cached_property
    def dim(self) -> int:
        return self.recipe.tokens.space(self.n_features, self.n_clusters).dim

    def _places(
        self, x: Tensor, c: Tensor, drops: Drops | None, depth: int
    ) -> dict[str, Tensor] | None:
        if drops is None:
            return None
        runs, tasks, n, _ = x.shape
        k = c.shape[2]
        sizes = {"encoder_cross": (n, k), "encoder_self": (n, n), "decoder_cross": (k, n),
                 "decoder_self": (k, k)}  # fmt: skip
        return drops.places({slot: (runs, tasks, *size) for slot, size in sizes.items()}, depth)


@dataclass(frozen=True)
class _Pass:
    """One pass through the layer: its projections, and its heads by slot."""

    recipe: Recipe
    weights: dict[str, Tensor]
    places: dict[str, Tensor] | None

    def projected(
        self, tokens: Float[Tensor, "r b m e"], *names: str
    ) -> tuple[Float[Tensor, "r b m e"], ...]:
        """Tokens times several matrices of each run.

        Every task has a copy of the matrices: their gradients are then many products of moderate
        length and a sum, and not one of enormous length that few processors can share.
        """
        tasks = tokens.shape[1]
        matrix = torch.cat([self.weights[f"layers.0.{name}"] for name in names], dim=1).mT
        each = matrix.unsqueeze(1).expand(-1, tasks, -1, -1).flatten(0, 1)
        rows = tokens.flatten(0, 1)
        if self.recipe.encoder_self.query != Dense(bias=True):
            return self._parted(torch.bmm(rows, each), tokens)
        bias = torch.cat([self.weights[f"layers.0.{name}_bias"] for name in names], dim=1)
        shift = bias[:, None, None].expand(-1, tasks, 1, -1).flatten(0, 1)
        return self._parted(torch.baddbmm(shift, rows, each), tokens)

    def _parted(self, products: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        """One tensor like the tokens for each matrix."""
        return torch.split(products.view(*tokens.shape[:3], -1), tokens.shape[3], dim=-1)

    def __call__(
        self, slot: str, queries: Tensor, keys: Tensor, values: Tensor
    ) -> Float[Tensor, "r b q e"]:
        """The output of a head."""
        head, shape = self.recipe.heads[slot], queries.shape
        scale = queries.shape[-1] ** -0.5 if isinstance(head.score, Scaled) else 1.0
        asking, lifted = _lifted(queries.flatten(0, 1), keys.flatten(0, 1), scale)
        values = values.flatten(0, 1)
        if not torch.is_grad_enabled():
            return _in_parts(head.activation, asking, lifted, values).view(shape)
        places = self.places[slot] if self.places is not None else None
        if head.activation == Softmax():
            output: Tensor = _attended(asking, lifted, values, places)
        else:
            weights = head.activation(asking @ lifted.mT)
            output = (weights if places is None else _dropped(weights, places)) @ values
        output = output.view(shape)
        return output if places is None else output / (1 - head.dropout)


@cache
def _names(
    tokens: Tokens, n_clusters: int, device: torch.device, dtype: torch.dtype
) -> Float[Tensor, "k m"]:
    """The codes of the clusters, on the device once: a captured graph cannot fetch them."""
    table = tokens.codes.table(n_clusters)
    return (table if ASSIGNMENT in tokens.subspaces else table[:, :0]).to(device, dtype)


def _lifted(queries: Tensor, keys: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Queries and keys whose dot product is -|q - k|^2 times a scale, up to a number a query.

    Neither soft-max nor sparsemax sees that number, so |q|^2 is left out; |k|^2 is one more
    dimension of the keys.
    """
    lifted = torch.cat([keys, keys.square().sum(dim=-1, keepdim=True)], dim=-1)
    return F.pad(2 * scale * queries, (0, 1), value=-scale), lifted


def _in_parts(activation: Activation, asking: Tensor, lifted: Tensor, values: Tensor) -> Tensor:
    """Attention of some queries at a time, where nothing is kept for a gradient."""
    rows = max(1, _CELLS // max(1, lifted.shape[:2].numel()))
    parts = [activation(part @ lifted.mT) @ values for part in torch.split(asking, rows, dim=1)]
    return torch.cat(parts, dim=1)
