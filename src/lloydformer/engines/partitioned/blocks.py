"""Data in parts, as estimators see them; and the engine that opens them."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.rows import Rows
from lloydformer.engines.parts.opening import Opening
from lloydformer.engines.parts.questions import AllWeights, Close, Gather, gathered
from lloydformer.engines.parts.session import PartsSession
from lloydformer.engines.parts.transport import Transport
from lloydformer.plans.session import Session


@dataclass(frozen=True)
class PartsBlocks:
    """Rows that are held in parts; only a few of them ever come here.

    Attributes
    ----------
    opening : Opening
        How parts are opened.
    transport : Transport
        The way to them.
    n_weighted : int
        Number of rows with a weight above 0.
    """

    opening: Opening
    transport: Transport
    n_weighted: int
    mapped: ClassVar[bool] = False
    first_row: ClassVar[int] = 0

    @property
    def layout(self) -> Layout:
        return self.opening.layout

    def subset(self, rows: Tensor) -> TensorBlocks:
        """A copy of some rows as blocks in this process, in the same coordinates."""
        answers = self.transport.ask(Gather(rows=rows, seen=False))
        return self.opening.few(*gathered([answer.found for answer in answers], len(rows)))

    def open_subset(self, rows: Tensor) -> AbstractContextManager[Session]:
        """A session over a copy of some rows in this process."""
        return self.opening.engine_with(1).open(self.subset(rows))

    def prefetch(self, start: int, stop: int) -> None:
        """Nothing to do: parts are in memory."""

    def weights(self, start: int, stop: int) -> Tensor | None:
        """Weights of the rows [start, stop), which come here: for mini-batches alone."""
        if not self.layout.weighted:
            return None
        answers = self.transport.ask(AllWeights())
        found = sorted(each for answer in answers for each in answer.found or ())
        return torch.cat([weights for _, weights in found])[start:stop]

    def read(self, start: int, stop: int) -> Rows:
        self._not_here()

    def take(self, rows: Tensor) -> Tensor:
        self._not_here()

    def _not_here(self) -> NoReturn:
        raise ValueError("X: found data on a cluster, and this needs all rows here; pass an array")


class InParts:
    """Opens data that are held in parts."""

    name = "parts"

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator[PartsSession]:
        assert isinstance(blocks, PartsBlocks)
        session = PartsSession(blocks.opening, blocks.transport)
        with session.resources:
            yield session
        blocks.transport.ask(Close())  # after an error, state ends with the rows that it belongs to
