"""Which worker gets which part: near its rows, and each worker about as many as it can work on."""

from collections.abc import Mapping, Sequence

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


def _nearest(part: Cut, holders: Sequence[Sequence[str]], threads: Mapping[str, int]) -> str | None:
    rows = dict[str, int]()
    for piece, first, last in part.pieces:
        for worker in holders[piece]:
            if worker in threads:
                rows[worker] = rows.get(worker, 0) + last - first
    return max(rows, key=lambda worker: rows[worker]) if rows else None
