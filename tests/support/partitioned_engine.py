"""An engine whose sessions are in partitions in this process, which may lose their state."""

from contextlib import contextmanager

import numpy as np

from lloydformer.engines.partitioned import (
    InProcessTransport,
    PartitionedSession,
    PartitionRows,
    PartitionSpec,
    PartitionStore,
)
from lloydformer.engines.partitioned.partitions import cut_partitions


class LossyTransport(InProcessTransport):
    """Notes all requests; partitions lose their state at random before one."""

    def __init__(self, stores, requests, loses, rng):
        super().__init__(stores)
        self.requests, self.loses, self.rng = requests, loses, rng

    def send(self, request):
        self.requests.append(request)
        for store in self.stores:
            for partition in store.partitions.values():
                if self.rng.random() < self.loses:
                    partition.close()
                    partition.version = -1
        return super().send(request)


class LossyEngine:
    """Cuts blocks at random places, and gives the partitions to some stores in turn.

    Parameters
    ----------
    n_partitions, n_stores, n_threads : int
        Partitions at most, stores that hold them, and the threads of each.
    inside : str
        The engine that opens a partition.
    loses : float
        The probability that a partition loses its state before a request.
    seed : int
        Of the cuts and losses.
    """

    name = "partitioned"

    def __init__(self, n_partitions=5, n_stores=2, n_threads=1, inside="native", loses=0.0, seed=0):
        self.n_partitions, self.n_stores, self.n_threads = n_partitions, n_stores, n_threads
        self.inside, self.loses, self.seed = inside, loses, seed
        self.requests = []

    @contextmanager
    def open(self, blocks):
        rng = np.random.default_rng(self.seed)
        at = np.sort(rng.integers(0, blocks.n_rows + 1, self.n_partitions - 1))
        lengths = np.diff(np.concatenate([[0], at, [blocks.n_rows]])).tolist()
        ranges = cut_partitions(lengths, blocks.leaf)
        spec = PartitionSpec.for_blocks(blocks, self.inside, single=len(ranges) == 1)
        size = blocks.n_rows // self.n_stores
        stores = [PartitionStore(spec, self.n_threads, size) for _ in range(self.n_stores)]
        for number, each in enumerate(ranges):
            rows, store = slice(each.start, each.stop), stores[number % self.n_stores]
            weights = None if blocks.sample_weight is None else blocks.sample_weight[rows]
            part = PartitionRows(each.start, blocks.points[rows], weights)
            store.partitions[number] = store.open(part)
        transport = LossyTransport(stores, self.requests, self.loses, rng)
        session = PartitionedSession(spec, transport)
        try:
            with session.resources:
                yield session
        finally:
            for store in stores:
                store.close()
