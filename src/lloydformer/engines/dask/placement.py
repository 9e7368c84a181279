"""Placement: partitions go to workers that have their rows, each about its share of them."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from lloydformer.engines.partitioned.partitions import PartitionRange, SourceRows

# A worker takes this times its share of the rows before a partition goes elsewhere: 5 % more work
# costs less than to copy the rows of a partition. Chosen by hand.
_SLACK = 1.05


def place_partitions(
    ranges: Sequence[PartitionRange],
    holders: Sequence[Sequence[str]],
    threads: Mapping[str, int],
) -> list[str]:
    """Return the worker of each partition.

    Parameters
    ----------
    ranges : sequence of PartitionRange
        In their order.
    holders : sequence of sequence of str
        For each chunk of the collection, the workers that have it.
    threads : mapping
        The number of threads of each worker; there is at least one worker.

    Returns
    -------
    list of str
        One that has most of the rows of a partition, unless it has too many already.
    """
    n_rows = sum(each.n_rows for each in ranges)
    share = {w: n_rows * n / sum(threads.values()) for w, n in threads.items()}
    load, workers = dict.fromkeys(threads, 0), []
    for each in ranges:
        held = dict[str, int]()  # rows that each worker has
        for source, first, last in each.sources:
            for worker in holders[source]:
                if worker in threads:
                    held[worker] = held.get(worker, 0) + last - first
        chosen = max(held, key=lambda worker: held[worker]) if held else None
        if chosen is None or load[chosen] + each.n_rows > _SLACK * share[chosen] + 1:
            chosen = min(threads, key=lambda w: (load[w] + each.n_rows) / share[w])
        load[chosen] += each.n_rows
        workers.append(chosen)
    return workers


def share_out(count: int, threads: Mapping[str, int]) -> list[str]:
    """Assign consecutive chunks to workers, in proportion to their threads."""
    workers = sorted(threads)
    ends = list(accumulate(threads[worker] for worker in workers))
    return [workers[bisect_right(ends, i * ends[-1] / max(count, 1))] for i in range(count)]


def merge_neighbours(
    ranges: Sequence[PartitionRange], workers: Sequence[str], most: int
) -> tuple[list[PartitionRange], list[str]]:
    """Merge neighbouring partitions of the same worker, up to `most` rows.

    Consecutive rows are fewer nodes of the tree, and each node is a call of a kernel and a summary.
    """
    merged, places = list[PartitionRange](), list[str]()
    for each, worker in zip(ranges, workers, strict=True):
        last = merged[-1] if merged else None
        if last is not None and places[-1] == worker and each.stop - last.start <= most:
            (source, start, middle), (other, again, stop) = last.sources[-1], each.sources[0]
            sources = last.sources + each.sources
            if source == other and middle == again:  # a chunk that was cut is whole again
                whole = SourceRows(source, start, stop)
                sources = (*last.sources[:-1], whole, *each.sources[1:])
            merged[-1] = PartitionRange(last.start, each.stop, sources)
        else:
            merged.append(each)
            places.append(worker)
    return merged, places
