"""Data in partitions as estimators see them, the engine that opens them, and the transport here."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks, TensorBlocks
from lloydformer.data.layout import Layout
from lloydformer.data.rows import Rows
from lloydformer.engines.partitioned.partitions import PartitionSpec, PartitionStore, Response
from lloydformer.engines.partitioned.requests import (
    CloseRequest,
    Request,
    WeightsRequest,
    copy_rows,
)
from lloydformer.engines.partitioned.session import PartitionedSession, Transport
from lloydformer.plans.session import Session


@dataclass(frozen=True)
class PartitionedBlocks:
    """Rows that are held in partitions; only a few of them ever come here.

    Attributes
    ----------
    spec : PartitionSpec
        How partitions are opened.
    transport : Transport
        The way to them.
    n_weighted : int
        Number of rows with a weight above 0.
    """

    spec: PartitionSpec
    transport: Transport
    n_weighted: int
    mapped: ClassVar[bool] = False
    first_row: ClassVar[int] = 0

    @property
    def layout(self) -> Layout:
        return self.spec.layout

    def subset(self, rows: Tensor) -> TensorBlocks:
        """Return a copy of some rows as blocks in this process, in the same coordinates."""
        return copy_rows(self.transport, self.spec, rows)

    def open_subset(self, rows: Tensor) -> AbstractContextManager[Session]:
        """Open a copy of some rows in this process."""
        return self.spec.make_engine(1).open(self.subset(rows))

    def prefetch(self, start: int, stop: int) -> None:
        """Do nothing: partitions are in memory."""

    def weights(self, start: int, stop: int) -> Tensor | None:
        """Return the weights of the rows [start, stop), which come here: for mini-batches alone."""
        if not self.layout.weighted:
            return None
        responses = self.transport.send(WeightsRequest())
        found = sorted(each for response in responses for each in response.result or ())
        return torch.cat([weights for _, weights in found])[start:stop]

    def read(self, start: int, stop: int) -> Rows:
        self._refuse()

    def take(self, rows: Tensor) -> Tensor:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise ValueError("X: found data on a cluster, and this needs all rows here; pass an array")


class PartitionedEngine:
    """Opens data that are held in partitions."""

    name = "partitioned"

    @contextmanager
    def open(self, blocks: Blocks) -> Iterator[PartitionedSession]:
        assert isinstance(blocks, PartitionedBlocks)
        session = PartitionedSession(blocks.spec, blocks.transport)
        with session.resources:
            yield session
        # Not after an error: then the state ends with the rows that it belongs to.
        blocks.transport.send(CloseRequest())


class InProcessTransport:
    """Stores in this process; each handles a request in turn."""

    def __init__(self, stores: Sequence[PartitionStore]) -> None:
        self.stores = stores

    def send(self, request: Request) -> list[Response]:
        return [store.handle(request) for store in self.stores]

    def fork(self) -> "InProcessTransport":
        return InProcessTransport([store.fork() for store in self.stores])
