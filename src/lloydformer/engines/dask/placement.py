"""Which worker gets which part: near its rows, and each worker about as many as it can work on."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from lloydformer.engines.parts.cuts import Cut

_SLACK = 1.05
"""A worker takes this times its share of the rows before a part goes elsewhere."""


def placed(
    parts: Sequence[Cut], holders: Sequence[Sequence[str]], threads: Mapping[str, int]
) -> list[str]:
    """The worker of each part.

    Parameters
    ----------
    parts : sequence of Cut
        In their order.
    holders : sequence of sequence of str
        For each piece, the workers that have it.
    threads : mapping
        The number of threads of each worker; there is at least one worker.

    Returns
    -------
    list of str
        One that has most of the rows of a part, unless it has too many already.
    """
    n_rows = sum(part.stop - part.start for part in parts)
    share = {w: n_rows * n / sum(threads.values()) for w, n in threads.items()}
    load, found = dict.fromkeys(threads, 0), []
    for part in parts:
        size = part.stop - part.start
        worker = _nearest(part, holders, threads)
        if worker is None or load[worker] + size > _SLACK * share[worker] + 1:
            worker = min(threads, key=lambda w: (load[w] + size) / share[w])
        load[worker] += size
        found.append(worker)
    return found


def shared_out(count: int, threads: Mapping[str, int]) -> list[str]:
    """Assign consecutive pieces to workers, in proportion to their threads."""
    workers = sorted(threads)
    ends = list(accumulate(threads[worker] for worker in workers))
    return [workers[bisect_right(ends, i * ends[-1] / max(count, 1))] for i in range(count)]


def fused(parts: Sequence[Cut], workers: Sequence[str], most: int) -> tuple[list[Cut], list[str]]:
    """Neighbouring parts of the same worker as one part of at most so many rows.

    Rows that stand together are fewer nodes of the tree, and each of them is a call of a kernel
    and a summary.
    """
    found, places = list[Cut](), list[str]()
    for part, worker in zip(parts, workers, strict=True):
        last = found[-1] if found else None
        if last is not None and places[-1] == worker and part.stop - last.start <= most:
            found[-1] = Cut(last.start, part.stop, _joined(last.pieces, part.pieces))
        else:
            found.append(part)
            places.append(worker)
    return found, places


Ranges = tuple[tuple[int, int, int], ...]
"""Numbers of pieces, and rows of each."""


def _joined(first: Ranges, second: Ranges) -> Ranges:
    """One after the other; a piece that was cut between them is whole again."""
    (number, start, middle), (other, again, stop) = first[-1], second[0]
    if number == other and middle == again:
        return (*first[:-1], (number, start, stop), *second[1:])
    return first + second


def _nearest(part: Cut, holders: Sequence[Sequence[str]], threads: Mapping[str, int]) -> str | None:
    rows = dict[str, int]()
    for piece, first, last in part.pieces:
        for worker in holders[piece]:
            if worker in threads:
                rows[worker] = rows.get(worker, 0) + last - first
    return max(rows, key=lambda worker: rows[worker]) if rows else None
