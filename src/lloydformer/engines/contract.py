"""The contract of engines: an engine opens data and gives a session."""

from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from lloydformer.data.blocks import Blocks
from lloydformer.plans.session import Session


@runtime_checkable
class Engine(Protocol):
    """Opens data for folds.

    The number of threads or workers of an engine does not change a bit of its results.
    """

    name: str

    def open(self, blocks: Blocks) -> AbstractContextManager[Session]:
        """Return a session over these data; leaving the context frees its threads and memory."""
        ...
