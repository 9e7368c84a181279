"""Partitions on ranks: who holds which rows, and a transport that is one all-gather per request."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor

from lloydformer.engines.partitioned.labels import DistributedLabels, finish_labels
from lloydformer.engines.partitioned.partitions import (
    PartitionRange,
    PartitionRows,
    PartitionSpec,
    PartitionStore,
    Response,
    cut_partitions,
)
from lloydformer.engines.partitioned.requests import FoldRequest, Request, compute_labels
from lloydformer.engines.ranks.group import MessageKind, Ranks
from lloydformer.engines.thread_pool import allowed_threads


@dataclass(frozen=True)
class Placement:
    """A partition, and the rank that holds it."""

    range: PartitionRange
    rank: int


def place_on_ranks(lengths: Sequence[int], leaf: int, *, single: bool) -> list[Placement]:
    """Cut shards of these lengths into partitions, in their order; with `single` into one.

    A partition is held by the rank that has most of its rows. Leaves with rows of other ranks are
    partitions of their own, so that the rank's own rows need not be copied.
    """
    ranges = cut_partitions(lengths, leaf, sum(lengths) if single else 1)
    if len(ranges) > 1:
        ranges = [inner for each in ranges for inner in _cut_at_own_leaves(each, leaf)]
    return [Placement(each, _holder(each)) for each in ranges]


def _holder(part: PartitionRange) -> int:
    return max(part.sources, key=lambda rows: rows.stop - rows.start).source


def _cut_at_own_leaves(part: PartitionRange, leaf: int) -> list[PartitionRange]:
    """Cut a partition before and after the whole leaves of its largest source."""
    offset, ends = part.start, [part.start]
    for source, first, last in part.sources:
        stop = offset + last - first
        if source == _holder(part):
            inner = -(-offset // leaf) * leaf, stop if stop == part.stop else stop // leaf * leaf
            # Whole leaves of the holder stay views of its shard; the others are copied.
            if inner[0] < inner[1]:
                ends += [end for end in inner if part.start < end < part.stop]
        offset = stop
    return [part.cut(start, stop) for start, stop in pairwise([*ends, part.stop])]


@dataclass(frozen=True)
class AllGather:
    """The partitions of all ranks; all of them send the same requests in the same order.

    Attributes
    ----------
    ranks : Ranks
        Who holds partitions.
    store : PartitionStore
        The partitions of this rank.
    placements : list of Placement
        All partitions, and who holds them.
    """

    ranks: Ranks
    store: PartitionStore
    placements: Sequence[Placement]

    def send(self, request: Request) -> list[Response]:
        """Run a request on all ranks: one all-gather. An error of one is raised on all."""
        fold = request.fold if isinstance(request, FoldRequest) else None
        name = type(request if fold is None else fold).__name__
        # With its checksum: ranks whose requests differ would merge results of different folds.
        kind = MessageKind.of(name, request) if self.ranks.size > 1 else MessageKind(name)
        responses = self.ranks.gather_results(lambda: self.store.handle(request), kind)
        return [each for each in responses if each.result is not None or each.lost]

    def fork(self) -> "AllGather":
        return replace(self, store=self.store.fork())

    def own_labels(self, labels: DistributedLabels) -> Tensor:
        """Return the labels of the rows that this rank was given; -1 for trimmed points."""
        held = dict[int, Tensor]()

        def label() -> None:
            for number, partition in self.store.partitions.items():
                labelling = compute_labels(self.store.spec, partition.blocks, labels.folds)
                held[number] = finish_labels(labelling, labels.numbers)

        # An error of one rank is raised on all before rows are exchanged: nobody waits for it.
        self.ranks.gather_results(label, MessageKind("labels"))
        empty = torch.empty(0, dtype=torch.int32)
        return return_to_shards(held, empty, self.placements, self.ranks)


def hold_partitions(
    points: Tensor,
    weights: Tensor | None,
    spec: PartitionSpec,
    placements: Sequence[Placement],
    ranks: Ranks,
) -> AllGather:
    """Move rows to the ranks that hold their partitions.

    points, weights: the shard of this rank, (m, d) and (m,). Every rank uses as many threads as
    both torch and OpenMP allow.
    """
    rows = move_to_holders(points, placements, ranks)
    moved = {} if weights is None else move_to_holders(weights, placements, ranks)
    store = PartitionStore(spec, allowed_threads(), sum(map(len, rows.values())))
    for number, own in rows.items():
        first_row = placements[number].range.start
        partition = PartitionRows(first_row, own, moved.get(number))
        store.partitions[number] = store.open(partition)
    return AllGather(ranks, store, placements)


def move_to_holders(
    shard: Tensor, placements: Sequence[Placement], ranks: Ranks
) -> dict[int, Tensor]:
    """Return the rows of the partitions that this rank holds, by the numbers of the partitions.

    shard: the rows (m, ...) of this rank. Rows that stay are not copied, unless they are in one
    partition with those of other ranks.
    """
    parts: dict[int, list[Tensor]] = {}
    exchange = Exchange(ranks, shard[:0])
    for number, placement in enumerate(placements):
        for owner, first, last in placement.range.sources:
            own = shard[first:last] if owner == ranks.rank else None
            found = exchange.add(owner, placement.rank, own, last - first)
            if found is not None:
                parts.setdefault(number, []).append(found)
    exchange.run()
    return {number: _join(own) for number, own in parts.items()}


def return_to_shards(
    held: dict[int, Tensor], like: Tensor, placements: Sequence[Placement], ranks: Ranks
) -> Tensor:
    """Return the values (m,) of this rank's own rows: the reverse of `move_to_holders`.

    held: values of the partitions that this rank holds, by their numbers. like: an empty tensor of
    their kind.
    """
    parts: list[Tensor] = []
    exchange = Exchange(ranks, like)
    for number, placement in enumerate(placements):
        offset = 0
        for owner, first, last in placement.range.sources:
            stop = offset + last - first
            own = held[number][offset:stop] if placement.rank == ranks.rank else None
            found = exchange.add(placement.rank, owner, own, last - first)
            if found is not None:
                parts.append(found)
            offset = stop
    exchange.run()
    return _join(parts) if parts else like


class Exchange:
    """Rows that go from rank to rank.

    All ranks add the same pieces in the same order, which is how gloo and NCCL match the messages
    between two of them.

    Parameters
    ----------
    ranks : Ranks
        Who takes part.
    like : Tensor of shape (0, ...)
        An empty tensor of the kind of the rows.
    """

    def __init__(self, ranks: Ranks, like: Tensor) -> None:
        self._ranks, self._like = ranks, like
        self._operations: list[dist.P2POp] = []

    def add(self, sender: int, receiver: int, rows: Tensor | None, n_rows: int) -> Tensor | None:
        """Add a piece, which its sender passes as `rows`.

        Returns the tensor that has it after `run`, on the receiver; None on other ranks.
        """
        rank, device = self._ranks.rank, self._ranks.device
        if sender == receiver == rank:
            return rows
        if receiver == rank:
            shape = n_rows, *self._like.shape[1:]
            received = torch.empty(shape, dtype=self._like.dtype, device=device)
            self._operations.append(dist.P2POp(dist.irecv, received, sender))
            return received
        if sender == rank:
            assert rows is not None
            sent = rows.contiguous().to(device)
            self._operations.append(dist.P2POp(dist.isend, sent, receiver))
        return None

    def run(self) -> None:
        """Start all messages, and wait; the time limit is that of the process group."""
        for work in dist.batch_isend_irecv(self._operations) if self._operations else []:
            work.wait()


def _join(parts: list[Tensor]) -> Tensor:
    on_host = [part.cpu() for part in parts]
    return on_host[0] if len(on_host) == 1 else torch.cat(on_host)
