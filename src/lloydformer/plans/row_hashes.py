"""A fold that hashes the data: one number from all rows, their weights and their places."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lloydformer.plans.session import Columns, PointBlock, SumFold

# The constants of splitmix64 (Steele, Lea and Flood, 2014), as signed numbers: torch has no
# multiplication of unsigned 64-bit integers.
_STEP, _FIRST, _SECOND = -7046029254386353131, -4658895280553007687, -7723592293110705685


@dataclass(frozen=True)
class RowHashes(SumFold):
    """The sum of a hash of each row with its weight and its global number, modulo 2^64.

    Integers: the sum does not depend on how the rows are cut. It does not protect against data that
    are constructed to have the same sum.
    """

    writes: ClassVar[Columns] = ()

    def map(self, block: PointBlock) -> tuple[Tensor]:
        rows = block.rows.take(torch.arange(block.size, device=block.labels.device)).double()
        if block.weights is not None:
            rows = torch.cat([rows, block.weights[:, None]], dim=1)
        # Places enter, so that permuted columns or rows have another hash.
        columns = torch.arange(1, rows.shape[1] + 1, device=rows.device) * _STEP
        hashed = _mix(rows.contiguous().view(torch.int64) ^ columns).sum(dim=1)
        places = torch.arange(block.start, block.start + block.size, device=rows.device)
        return (_mix(hashed + places * _STEP).sum(),)


def _mix(numbers: Tensor) -> Tensor:
    """Apply the last steps of splitmix64; products and sums are modulo 2^64."""
    numbers = (numbers ^ (numbers >> 30)) * _FIRST
    numbers = (numbers ^ (numbers >> 27)) * _SECOND
    return numbers ^ (numbers >> 31)
