"""The trained layers of d 32 and k 10 that several figures look at."""

from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.pretrained import Pretrained, load
from lloydformer.paper.artefact import Found
from lloydformer.paper.scope import Scope
from lloydformer.paper.trainings import TRIALS, Group, again

PROPOSED, ABLATION = Group(32, 10), Group(32, 10, codes=None)
_ABLATION = Path(__file__).parent / "weights" / "d32-k10-ablation.json"
N_LAYERS = 3
"""Freshly trained layers that the full protocol averages over."""


def layers(scope: Scope, group: Group = PROPOSED) -> list[Pretrained]:
    """The layer in the package; with `full`, the first trials of a training of one's own."""
    if not scope.full:
        return [load("d32-k10" if group == PROPOSED else _ABLATION)]
    trained = again(group, scope, TRIALS)
    return [
        Pretrained(group.name, trained.settings, trained.runs[number], row.unsqueeze(0), {})
        for number, row in enumerate(trained.weights[:N_LAYERS])
    ]


def stacked(found: list[Pretrained], device: str) -> Float[Tensor, "r p"]:
    """The weights of several layers, a row each."""
    return torch.cat([layer.weights for layer in found]).to(device)


def trained(scope: Scope, group: Group = PROPOSED) -> Found:
    """The piece that trains, so that later ones only load: what the layers came to."""
    return {"trained": group.name, "seeds": [layer.run.seed for layer in layers(scope, group)]}
