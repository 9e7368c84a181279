"""The trained layers for d = 32 and k = 10 that several labels use."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.pretrained import Pretrained, load
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.scope import Scope
from lloydformer.paper.training_runs import TRIALS, TrainingGroup, train_group

PROPOSED, ABLATION = TrainingGroup(32, 10), TrainingGroup(32, 10, codes=None)
_ABLATION = Path(__file__).parent / "weights" / "d32-k10-ablation.json"
N_LAYERS = 3
"""Number of newly trained layers over which the full protocol averages."""


def layers(scope: Scope, group: TrainingGroup = PROPOSED) -> list[Pretrained]:
    """The layer in the package; for a full scope, the first trials of a new training."""
    if not scope.full:
        return [load("d32-k10" if group == PROPOSED else _ABLATION)]
    trained = train_group(group, scope, TRIALS)
    return [
        Pretrained(group.name, trained.settings, trained.runs[number], row.unsqueeze(0), {})
        for number, row in enumerate(trained.weights[:N_LAYERS])
    ]


def stacked(found: list[Pretrained], device: str) -> Float[Tensor, "r p"]:
    """The weights of several layers, one row each."""
    return torch.cat([layer.weights for layer in found]).to(device)


def training_pieces(
    scope: Scope, groups: Mapping[str, TrainingGroup] | None = None
) -> dict[str, Piece]:
    """Pieces that train the layers, which later pieces load; none unless the scope is full.

    groups: by name of the piece; one piece `training` of PROPOSED by default.
    """
    if not scope.full:
        return {}
    groups = groups or {"training": PROPOSED}
    return {name: partial(trained, scope, group) for name, group in groups.items()}


def trained(scope: Scope, group: TrainingGroup = PROPOSED) -> Record:
    """Train the layers of a group; returns its name and the seeds."""
    return {"trained": group.name, "seeds": [layer.run.seed for layer in layers(scope, group)]}
