"""What an engine is: it runs the folds of a plan over blocks, and keeps the points' state."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lloydformer.data.blocks import Blocks
from lloydformer.plans.contract import Run


@dataclass(frozen=True)
class State:
    """What is remembered of each point from fold to fold: 12 to 16 bytes.

    It is valid within one step of a plan and can be computed again. A worker keeps the state of
    the leaves that it owns.
    """

    labels: Tensor
    before: Tensor
    distances: Tensor

    @classmethod
    def of(cls, data: Blocks) -> "State":
        labels = torch.full((data.n_rows,), -1, dtype=torch.int32, device=data.device)
        distances = torch.empty(data.n_rows, dtype=data.dtype, device=data.device)
        return cls(labels, labels.clone(), distances)

    def clear(self) -> None:
        """Forget the labels of the last iteration."""
        self.before.fill_(torch.iinfo(torch.int32).min)


@runtime_checkable
class Engine(Protocol):
    """Merges in row order: the number of threads or workers does not change a bit."""

    name: str

    def over(self, data: Blocks, state: State) -> AbstractContextManager[Run]:
        """A function that runs folds over these data, while what it needs is up."""
        ...
