"""Data in parts: ordinary sessions hold consecutive rows each, and one session asks all of them.

A part is a range of rows that is cut at leaves. Whoever holds it opens it with the native (or the
chunked) engine, node by node of the one tree of sums (`nodes`). `PartsSession` is the session of
all rows: it puts questions to the holders (`questions`), merges what they answer along the tree,
and remembers how to make their state again (`journal`). How questions travel is the transport's
business (`transport`): in this process, to workers of a cluster, between ranks.
"""

from lloydformer.engines.parts.blocks import InParts, PartsBlocks
from lloydformer.engines.parts.cuts import Cut
from lloydformer.engines.parts.holder import Holder
from lloydformer.engines.parts.in_process import InProcess
from lloydformer.engines.parts.labels import LabelsOnParts
from lloydformer.engines.parts.opening import Opening, PartRows
from lloydformer.engines.parts.session import PartsSession
from lloydformer.engines.parts.transport import Transport

__all__ = [
    "Cut",
    "Holder",
    "InParts",
    "InProcess",
    "LabelsOnParts",
    "Opening",
    "PartRows",
    "PartsBlocks",
    "PartsSession",
    "Transport",
]
