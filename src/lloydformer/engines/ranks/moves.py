"""Rows that go to the rank that holds their part, and labels that come back."""

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from lloydformer.engines.ranks.group import Ranks
from lloydformer.engines.ranks.places import Place


def rows_of_parts(mine: Tensor, where: Sequence[Place], ranks: Ranks) -> dict[int, Tensor]:
    """The rows of the parts that this rank holds, by the numbers of the parts.

    mine: the rows (m, ...) of this rank's shard. Rows that stay are not copied, unless they stand
    in one part with those of other ranks.
    """
    found: dict[int, list[Tensor]] = {}
    operations: list[dist.P2POp] = []
    for number, place in enumerate(where):
        for owner, first, last in place.cut.pieces:
            if place.rank == ranks.rank:
                pieces = found.setdefault(number, [])
                if owner == ranks.rank:
                    pieces.append(mine[first:last])
                else:
                    size = (last - first, *mine.shape[1:])
                    pieces.append(torch.empty(size, dtype=mine.dtype, device=ranks.device))
                    operations.append(dist.P2POp(dist.irecv, pieces[-1], owner))
            elif owner == ranks.rank:
                piece = mine[first:last].contiguous().to(ranks.device)
                operations.append(dist.P2POp(dist.isend, piece, place.rank))
    _run(operations)
    return {number: _joined(pieces) for number, pieces in found.items()}


def _joined(pieces: list[Tensor]) -> Tensor:
    there = [piece.cpu() for piece in pieces]
    return there[0] if len(there) == 1 else torch.cat(there)


def values_of_shard(
    held: dict[int, Tensor], like: Tensor, where: Sequence[Place], ranks: Ranks
) -> Tensor:
    """The reverse of `rows_of_parts`: values (m,) of this rank's own rows.

    held: values of the parts that this rank holds, by their numbers. like: an empty tensor of
    their kind.
    """
    found: list[Tensor] = []
    operations: list[dist.P2POp] = []
    for number, place in enumerate(where):
        at = 0
        for owner, first, last in place.cut.pieces:
            here = slice(at, at + last - first)
            at = here.stop
            if owner == place.rank == ranks.rank:
                found.append(held[number][here])
            elif owner == ranks.rank:
                found.append(torch.empty(last - first, dtype=like.dtype, device=ranks.device))
                operations.append(dist.P2POp(dist.irecv, found[-1], place.rank))
            elif place.rank == ranks.rank:
                piece = held[number][here].contiguous().to(ranks.device)
                operations.append(dist.P2POp(dist.isend, piece, owner))
    _run(operations)
    return _joined(found) if found else like


def _run(operations: list[dist.P2POp]) -> None:
    """Start all of them, and wait; the time limit is that of the process group."""
    for work in dist.batch_isend_irecv(operations) if operations else []:
        work.wait()
