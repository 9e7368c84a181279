"""fig:lrn-attn-map: what the learned heads attend to, beside the constructed ones."""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool2d

from lloydformer.learning.evaluation import unseen
from lloydformer.paper.artefact import Artefact, Found, Piece, Table
from lloydformer.paper.heads import HEADS, Maps, constructed, maps
from lloydformer.paper.layers import layers, trained
from lloydformer.paper.lrn_attn_map_claims import claims
from lloydformer.paper.lrn_attn_map_pictures import pictures
from lloydformer.paper.matrices import written
from lloydformer.paper.scope import Scope

N_SHOWN, N_POINTS = 4, 30
"""Tasks in the figure, and their points in maps of cross-attention."""
POOLED = 8
"""Points a side of a cell in the picture of the encoder's self-attention."""


def pieces(scope: Scope) -> Mapping[str, Piece]:
    first: dict[str, Piece] = {"training": partial(trained, scope)} if scope.full else {}
    return first | {"maps": partial(measured, scope)}


def measured(scope: Scope) -> Found:
    """One update from random centers: both circuits' maps, measured on all tasks, kept of some."""
    found = layers(scope)[0]
    thm, lrn = constructed(found).to(scope.device), found.circuit().to(scope.device)
    count = scope.count(20, 320)
    points, centers = unseen(found.settings.tasks, "normal", count, scope.seed, scope.device)
    pairs = ((maps(thm, x.double(), c.double()), maps(lrn, x, c))
             for x, c in zip(points[0], centers[0], strict=True))  # fmt: skip
    measures, shown = [], []
    for number, (built, learned) in enumerate(pairs):
        measures.append({head: likeness(learned[head], built[head]) for head in HEADS})
        if number < N_SHOWN:
            shown.append({"thm": _kept(built), "lrn": _kept(learned)})
    return {"rows": _mean(measures), "n_tasks": count, "shown": shown}


def likeness(learned: Float[Tensor, "q m"], built: Float[Tensor, "q m"]) -> Found:
    """keys: how many keys a query attends to, as the exponential of the entropy. of: all keys.
    largest: the mean largest weight. agreement: queries with their largest weight where the
    construction has weight. mass: the weight there. distance: half the sum of |difference|.
    """
    there = built > 0
    top = learned.argmax(dim=-1, keepdim=True)
    values = {
        "keys": torch.special.entr(learned).sum(dim=-1).exp(),
        "built_keys": torch.special.entr(built).sum(dim=-1).exp(),
        "largest": learned.amax(dim=-1),
        "agreement": there.gather(1, top).double(),
        "mass": (learned * there).sum(dim=-1),
        "distance": (learned - built).abs().sum(dim=-1) / 2,
    }
    means = {name: float(value.mean()) for name, value in values.items()}
    return {**means, "of": learned.shape[1]}


def _mean(measures: Sequence[Found]) -> Found:
    return {
        head: {
            name: round(sum(one[head][name] for one in measures) / len(measures), 4)
            for name in measures[0][head]
        }
        for head in HEADS
    }


def _kept(found: Maps) -> Found:
    """Small enough for a file: some points of cross-attention, self-attention in cells."""
    parts = {
        "encoder_cross": found["encoder_cross"][:N_POINTS],
        "encoder_self": avg_pool2d(found["encoder_self"][None], POOLED)[0],
        "decoder_cross": found["decoder_cross"][:, :N_POINTS],
        "decoder_self": found["decoder_self"],
    }
    return {head: written(part.where(part > 1e-5, 0), digits=2) for head, part in parts.items()}


def result(found: Mapping[str, Found]) -> Found:
    return dict(found["maps"])


def tables(result: Found) -> Sequence[Table]:
    """Numbers for what the picture shows."""
    columns = [
        "Attention", "keys attended to", "constructed", "largest weight",
        "weight where the construction has it", "distance to the constructed map",
    ]  # fmt: skip
    return [
        Table(
            f"Learned maps, means over {result['n_tasks']} tasks; keys attended to is the "
            "exponential of the entropy; the distance is total variation, between 0 and 1",
            columns,
            [[head.replace("_", " "), *_cells(row)] for head, row in result["rows"].items()],
        )
    ]


def _cells(row: Found) -> list[str]:
    keys = f"{row['keys']:.1f} of {row['of']:.0f}"
    names = ("largest", "mass", "distance")
    return [keys, f"{row['built_keys']:.1f}", *(f"{row[name]:.3f}" for name in names)]


ARTEFACT = Artefact(
    label="lrn-attn-map",
    cites=("fig:lrn-attn-map",),
    title="Learned and constructed attention maps",
    about=(
        "What each of the four attentions attends to in one update of 512 points, from random "
        "centers: the circuit of thm:l2-clus-eu and the learned layer, for d = 32 and k = 10."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
    pictures=pictures,
)
