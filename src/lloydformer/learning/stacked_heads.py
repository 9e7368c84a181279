"""Projections and attention heads of many runs at once."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from lloydformer.circuits.activations import Softmax
from lloydformer.circuits.activations.contract import HeadActivation
from lloydformer.circuits.projections import Dense
from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.scores import Scaled
from lloydformer.learning.attention import DropoutAttention, DropWeights

_dropout_attention: Callable[..., Tensor] = DropoutAttention.apply
_drop_weights: Callable[..., Tensor] = DropWeights.apply
_CELLS = 1 << 26
"""Upper bound of the scores in memory at a time, when no gradient is needed."""


@dataclass(frozen=True)
class StackedHeads:
    """The projections and heads of a learned recipe, for one pass through the layer.

    `weights`: by name, each (r, *shape). `dropped`: flat indices by slot, or None for no dropout.
    """

    recipe: Recipe
    weights: dict[str, Tensor]
    dropped: dict[str, Tensor] | None

    def projected(
        self, tokens: Float[Tensor, "r b m e"], *names: str
    ) -> tuple[Float[Tensor, "r b m e"], ...]:
        """Multiply the tokens by several matrices of each run.

        The matrices are expanded to every task. Their gradient is then many products of moderate
        length and a sum, instead of one very long product that few processors can share.
        """
        tasks = tokens.shape[1]
        matrix = torch.cat([self.weights[f"layers.0.{name}"] for name in names], dim=1).mT
        each = matrix.unsqueeze(1).expand(-1, tasks, -1, -1).flatten(0, 1)
        rows = tokens.flatten(0, 1)
        if self.recipe.encoder_self.query != Dense(bias=True):
            return self._split(torch.bmm(rows, each), tokens)
        bias = torch.cat([self.weights[f"layers.0.{name}_bias"] for name in names], dim=1)
        shift = bias[:, None, None].expand(-1, tasks, 1, -1).flatten(0, 1)
        return self._split(torch.baddbmm(shift, rows, each), tokens)

    def _split(self, products: Tensor, tokens: Tensor) -> tuple[Tensor, ...]:
        """One tensor in the shape of the tokens for each matrix."""
        return torch.split(products.view(*tokens.shape[:3], -1), tokens.shape[3], dim=-1)

    def __call__(
        self, slot: str, queries: Tensor, keys: Tensor, values: Tensor
    ) -> Float[Tensor, "r b q e"]:
        """Return the output of the head in a slot."""
        head, shape = self.recipe.heads[slot], queries.shape
        scale = queries.shape[-1] ** -0.5 if isinstance(head.score, Scaled) else 1.0
        asking, lifted = _lifted(queries.flatten(0, 1), keys.flatten(0, 1), scale)
        values = values.flatten(0, 1)
        if not torch.is_grad_enabled():
            return _in_chunks(head.activation, asking, lifted, values).view(shape)
        dropped = self.dropped[slot] if self.dropped is not None else None
        if head.activation == Softmax():
            output: Tensor = _dropout_attention(asking, lifted, values, dropped)
        else:
            weights = head.activation(asking @ lifted.mT)
            output = (weights if dropped is None else _drop_weights(weights, dropped)) @ values
        output = output.view(shape)
        return output if dropped is None else output / (1 - head.dropout)


def _lifted(queries: Tensor, keys: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """Queries and keys whose dot product is -scale * |q - k|^2, up to a constant of each query.

    Softmax and sparsemax do not depend on that constant, so |q|^2 is left out; |k|^2 is one more
    dimension of the keys.
    """
    lifted = torch.cat([keys, keys.square().sum(dim=-1, keepdim=True)], dim=-1)
    return F.pad(2 * scale * queries, (0, 1), value=-scale), lifted


def _in_chunks(
    activation: HeadActivation, asking: Tensor, lifted: Tensor, values: Tensor
) -> Tensor:
    """Attention over chunks of queries, for when no gradient is needed."""
    rows = max(1, _CELLS // max(1, lifted.shape[:2].numel()))
    parts = [activation(part @ lifted.mT) @ values for part in torch.split(asking, rows, dim=1)]
    return torch.cat(parts, dim=1)
