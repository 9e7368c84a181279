"""Ranks of torch.distributed: processes that were started together, by `torchrun` for example.

Begin with `group.py::Ranks`, which exchanges values; `transport.py` holds the partitions of each
rank. May import `engines/partitioned`.
"""

from lloydformer.engines.ranks.group import Ranks, join_ranks

__all__ = ["Ranks", "join_ranks"]
