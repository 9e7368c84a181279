"""Soft-max attention with dropped weights, forward and backward, with few passes over memory."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

_softmax = torch.ops.aten._softmax.out
_softmax_backward = torch.ops.aten._softmax_backward_data


class Attended(torch.autograd.Function):
    r"""$\mathrm{drop}(\sigma(Q K^\top))\, V$; what is dropped is given by its places.

    A place past the last weight stands for none: the weights are kept with one number to spare
    there. Autograd would copy them twice more to drop some.
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries: Float[Tensor, "b q e"],
        keys: Float[Tensor, "b m e"],
        values: Float[Tensor, "b m f"],
        places: Int[Tensor, " p"] | None,
    ) -> Float[Tensor, "b q f"]:
        scores = queries @ keys.mT
        flat, weights = _spared(scores)
        _softmax(scores, -1, False, out=weights)
        dropped = None
        if places is not None:
            dropped = flat[places]
            flat.index_fill_(0, places, 0.0)
        ctx.save_for_backward(queries, keys, values, places, dropped)
        ctx.flat = flat  # changed for a moment while a gradient is taken
        return weights @ values

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        queries, keys, values, places, dropped = ctx.saved_tensors
        flat: Tensor = ctx.flat
        weights = flat[:-1].view(*queries.shape[:2], keys.shape[1])
        by_values = weights.mT @ gradients[0]
        flat_gradient, gradient = _spared(weights)
        torch.bmm(gradients[0], values.mT, out=gradient)
        if places is not None:
            flat_gradient.index_fill_(0, places, 0.0)
            flat[places] = dropped  # soft-max was taken before the drop
        by_scores = _softmax_backward(gradient, weights, -1, weights.dtype)
        if places is not None:
            flat.index_fill_(0, places, 0.0)
        return by_scores @ keys, by_scores.mT @ queries, by_values, None


def _spared(like: Tensor) -> tuple[Tensor, Tensor]:
    """Room for as many numbers and one more, flat and in shape without it."""
    flat = like.new_empty(like.numel() + 1)
    return flat, flat[:-1].view(like.shape)


class Dropped(torch.autograd.Function):
    """Weights with those at some places set to 0; a place past the end stands for none."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        return _without(weights, places)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _without(gradients[0], *ctx.saved_tensors), None


def _without(weights: Tensor, places: Tensor) -> Tensor:
    flat, kept = _spared(weights)
    kept.copy_(weights)
    flat.index_fill_(0, places, 0.0)
    return kept
