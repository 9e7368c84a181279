"""Softmax attention with dropout, forward and backward, with few passes over memory."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_softmax = torch.ops.aten._softmax.out
_softmax_backward = torch.ops.aten._softmax_backward_data


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
        ctx.flat = flat  # not saved for backward: `backward` changes it and changes it back
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


class DropWeights(torch.autograd.Function):
    """Set the weights at some flat indices to 0; an index one past the end is padding."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, dropped: Tensor) -> Tensor:
        ctx.save_for_backward(dropped)
        return _without(weights, dropped)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _without(gradients[0], *ctx.saved_tensors), None


def _without(weights: Tensor, dropped: Tensor) -> Tensor:
    flat, kept = _padded_buffer(weights)
    kept.copy_(weights)
    flat.index_fill_(0, dropped, 0.0)
    return kept
