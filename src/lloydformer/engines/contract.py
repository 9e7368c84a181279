"""What an engine is: it runs the folds of a plan over blocks, and keeps the points' state."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.data.scratch import room
from lloydformer.plans.contract import Run


@dataclass(frozen=True)
class State:
    """What is remembered of each point from fold to fold: 12 to 16 bytes.

    It is valid within one step of a plan and can be computed again. A worker keeps the state of
    the leaves that it owns. On the CPU it is mapped from a scratch file where it is large.
    """

    labels: Tensor
    before: Tensor
    distances: Tensor

    @classmethod
    def of(cls, data: Blocks) -> "State":
        labels, before, distances = (
            _column(data, dtype) for dtype in (torch.int32, torch.int32, data.dtype)
        )
        return cls(labels.fill_(-1), before, distances)

    def copied_labels(self, data: Blocks) -> Tensor:
        """The labels in a place of their own, which later folds do not write to."""
        return _column(data, torch.int32).copy_(self.labels)

    def clear(self) -> None:
        """Forget the labels of the last iteration."""
        self.before.fill_(torch.iinfo(torch.int32).min)


def _column(data: Blocks, dtype: torch.dtype) -> Tensor:
    """A number for each point, on disk where the whole state would take too much memory."""
    if data.device.type != "cpu":
        return torch.empty(data.n_rows, dtype=dtype, device=data.device)
    state = data.n_rows * (2 * torch.int32.itemsize + data.dtype.itemsize)
    return torch.from_numpy(room(data.n_rows, dtype=str(dtype).removeprefix("torch."), of=state))


@runtime_checkable
class Engine(Protocol):
    """Merges in row order: the number of threads or workers does not change a bit."""

    name: str

    def over(self, data: Blocks, state: State) -> AbstractContextManager[Run]:
        """A function that runs folds over these data, while what it needs is up."""
        ...
