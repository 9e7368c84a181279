"""Squared distances by differences: exactly 0 for equal points."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

_BLOCK = 1 << 18  # distances computed at a time; they stay in cache


def squared_distances(
    queries: Float[Tensor, "*b q d"], keys: Float[Tensor, "*b m d"]
) -> Float[Tensor, "*b q m"]:
    """Return all |q - k|^2, by differences: equal rows have distance 0 exactly, at any shift.

    The expansion |q|^2 - 2 qk + |k|^2 is faster but not exact (docs/errata.md, 8).
    """
    live = _live(queries) | _live(keys)  # columns that are 0 in both add exactly 0
    queries, keys = queries[..., live], keys[..., live]
    rows = max(1, _BLOCK // max(1, keys.shape[-2]))
    blocks = [_differences_squared(block, keys) for block in torch.split(queries, rows, dim=-2)]
    return torch.cat(blocks, dim=-2)


def _live(tokens: Float[Tensor, "*b m d"]) -> Bool[Tensor, " d"]:
    """Columns that are not all 0."""
    return (tokens != 0).flatten(0, -2).any(dim=0)


def _differences_squared(queries: Tensor, keys: Tensor) -> Tensor:
    total = queries.new_zeros(()).expand(*queries.shape[:-1], keys.shape[-2])
    for q, k in zip(queries.unbind(-1), keys.unbind(-1), strict=True):
        difference = q.unsqueeze(-1) - k.unsqueeze(-2)  # (q, m)
        total = torch.addcmul(total, difference, difference)
    return total
