"""Engines: they run the folds of a plan over blocks of points."""

from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import Engine
from lloydformer.engines.native import Native, instruction_set

ENGINES = ("native", "chunked")
"""Names that `engine=` takes beside "auto"."""


def choose(name: str) -> Engine:
    """The engine of this name; "auto" is the fastest one that is there."""
    if name not in ("auto", *ENGINES):
        raise ValueError(f'engine: found {name!r}; pass "auto" or one of {", ".join(ENGINES)}')
    if name == "native" or (name == "auto" and instruction_set() is not None):
        return Native()
    return Chunked()
