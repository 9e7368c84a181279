"""Runs in groups: those of a group are trained together, and each rank trains some of the groups.

The last bits of a run depend on the runs of its group, since products of matrices are summed in
another order, but not on the ranks: the same groups give the same weights on 1, 2 or 7 ranks.
"""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor

from lloydformer.engines.ranks import Ranks
from lloydformer.learning.cuda_graph import GraphedTrainer
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.trainer import Trainer, make_trainer

V = TypeVar("V")


class RunGroups:
    """The trainers of this rank, and the state of all runs of all ranks.

    Parameters
    ----------
    settings : Settings
        Settings of all runs.
    runs : sequence of Run
        All runs, at least one.
    device : str or torch.device
        Where this rank trains.
    together : int or None
        Runs of a group; None for as many as give each rank one group.
    ranks : Ranks
        Who else trains.
    """

    def __init__(
        self,
        settings: Settings,
        runs: Sequence[Run],
        device: str | torch.device,
        together: int | None,
        ranks: Ranks,
    ) -> None:
        self.settings, self.runs, self.ranks = settings, tuple(runs), ranks
        self.together = size = together or -(-len(self.runs) // ranks.size)
        starts = range(0, len(self.runs), size)
        mine = [len(starts) * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1)]
        self.places = [slice(start, start + size) for start in starts[slice(*mine)]]
        trainers = [make_trainer(settings, self.runs[place], device) for place in self.places]
        self.trainers = [(trainer, GraphedTrainer(trainer)) for trainer in trainers]

    def of_all(self, function: Callable[[Trainer, GraphedTrainer], V]) -> list[V]:
        """Call a function for each group of this rank; return the results of all groups."""
        found = self.ranks.gather_results(lambda: [function(*pair) for pair in self.trainers])
        return list(chain.from_iterable(found))

    def tensors(self) -> dict[str, Tensor]:
        """The state of all runs on the CPU, a row for each run."""
        parts = self.of_all(
            lambda trainer, _: {n: t.detach().cpu() for n, t in trainer.state.tensors().items()}
        )
        return {
            name: torch.cat([part[name] for part in parts]) if tensor.ndim else tensor
            for name, tensor in parts[0].items()
        }

    def assign(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the state of all runs."""
        for place, (trainer, _) in zip(self.places, self.trainers, strict=True):
            trainer.state.assign(
                {n: (t[place] if t.ndim else t).to(trainer.device) for n, t in tensors.items()}
            )
