"""Ranks of torch.distributed: processes that were started together, by `torchrun` for example."""

from lloydformer.engines.ranks.group import Ranks, joined_ranks

__all__ = ["Ranks", "joined_ranks"]
