"""Engines: they run the folds of a plan over blocks of points."""

from lloydformer.engines.chunked import Chunked
from lloydformer.engines.contract import Engine

ENGINES = ("chunked",)
"""Names that `engine=` takes beside "auto"."""


def choose(name: str) -> Engine:
    """The engine of this name; "auto" is the fastest one that is there."""
    if name not in ("auto", *ENGINES):
        raise ValueError(f'engine: found {name!r}; pass "auto" or one of {", ".join(ENGINES)}')
    return Chunked()
