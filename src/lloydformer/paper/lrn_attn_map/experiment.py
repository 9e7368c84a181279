"""Measure fig:lrn-attn-map: how similar learned and constructed attention maps are."""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool2d

from lloydformer.learning.evaluation import unseen
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.attention_heads import HEADS, Maps, constructed, maps
from lloydformer.paper.matrix_text import written
from lloydformer.paper.scope import Scope
from lloydformer.paper.trained_layers import layers, training_pieces

N_SHOWN, N_POINTS = 4, 30
"""Number of tasks in the figure, and of their points in maps of cross-attention."""
POOLED = 8
"""One cell of the picture of the encoder's self-attention is the mean of POOLED x POOLED points."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece; a full scope trains first."""
    return training_pieces(scope) | {"maps": partial(measured, scope)}


def measured(scope: Scope) -> Record:
    """One update from random centers: mean similarity over all tasks, and the maps of N_SHOWN."""
    found = layers(scope)[0]
    thm, lrn = constructed(found).to(scope.device), found.circuit().to(scope.device)
    count = scope.count(20, 320)
    points, centers = unseen(found.settings.tasks, "normal", count, scope.seed, scope.device)
    pairs = ((maps(thm, x.double(), c.double()), maps(lrn, x, c))
             for x, c in zip(points[0], centers[0], strict=True))  # fmt: skip
    measures, shown = [], []
    for number, (built, learned) in enumerate(pairs):
        measures.append({head: similarity(learned[head], built[head]) for head in HEADS})
        if number < N_SHOWN:
            shown.append({"thm": _reduced(built), "lrn": _reduced(learned)})
    return {"rows": _mean(measures), "n_tasks": count, "shown": shown}


def similarity(learned: Float[Tensor, "q m"], built: Float[Tensor, "q m"]) -> Record:
    """Means over the queries (rows) of a learned map, compared to the constructed map `built`.

    keys, built_keys: how many keys a query attends to, as the exponential of the entropy. of:
    number of all keys. largest: the largest weight. agreement: share of queries whose largest
    weight is where the constructed map has weight. mass: the weight there. distance: total
    variation, half the sum of absolute differences.
    """
    nonzero = built > 0
    top = learned.argmax(dim=-1, keepdim=True)
    values = {
        "keys": torch.special.entr(learned).sum(dim=-1).exp(),
        "built_keys": torch.special.entr(built).sum(dim=-1).exp(),
        "largest": learned.amax(dim=-1),
        "agreement": nonzero.gather(1, top).double(),
        "mass": (learned * nonzero).sum(dim=-1),
        "distance": (learned - built).abs().sum(dim=-1) / 2,
    }
    means = {name: float(value.mean()) for name, value in values.items()}
    return {**means, "of": learned.shape[1]}


def _mean(measures: Sequence[Record]) -> Record:
    return {
        head: {
            name: round(sum(one[head][name] for one in measures) / len(measures), 4)
            for name in measures[0][head]
        }
        for head in HEADS
    }


def _reduced(found: Maps) -> Record:
    """Maps small enough for a file: cross-attention of N_POINTS points, pooled self-attention."""
    parts = {
        "encoder_cross": found["encoder_cross"][:N_POINTS],
        "encoder_self": avg_pool2d(found["encoder_self"][None], POOLED)[0],
        "decoder_cross": found["decoder_cross"][:, :N_POINTS],
        "decoder_self": found["decoder_self"],
    }
    return {head: written(part.where(part > 1e-5, 0), digits=2) for head, part in parts.items()}


def result(found: Mapping[str, Record]) -> Record:
    """The output of the piece `maps`."""
    return dict(found["maps"])
