"""Data in partitions: ordinary sessions hold consecutive rows each, and one session merges them.

A partition is a range of rows that is cut at leaves. The process that holds it opens it with the
native (or the chunked) engine, node by node of the one tree of sums (`tree_nodes.py`).
`PartitionedSession` is the session of all rows: it sends requests (`requests.py`) to the processes
through a transport, merges their results along the tree, and keeps a journal of the requests that
computed the state of the points, so that lost state can be computed again.

Transports: in this process (`blocks.py`), to the workers of a Dask cluster (`engines/dask`),
between ranks of torch.distributed (`engines/ranks`). Begin with `session.py`.
"""

from lloydformer.engines.partitioned.blocks import (
    InProcessTransport,
    PartitionedBlocks,
    PartitionedEngine,
)
from lloydformer.engines.partitioned.labels import DistributedLabels
from lloydformer.engines.partitioned.partitions import (
    PartitionRows,
    PartitionSpec,
    PartitionStore,
)
from lloydformer.engines.partitioned.session import PartitionedSession

__all__ = [
    "DistributedLabels",
    "InProcessTransport",
    "PartitionRows",
    "PartitionSpec",
    "PartitionStore",
    "PartitionedBlocks",
    "PartitionedEngine",
    "PartitionedSession",
]
