"""Measure fig:lrn-weights: how similar learned and constructed matrices are."""

from collections.abc import Mapping
from functools import partial

from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.pretrained import Pretrained
from lloydformer.paper.artefact import Piece, Record
from lloydformer.paper.attention_heads import HEADS, MATRICES, constructed, matrices
from lloydformer.paper.matrix_text import written
from lloydformer.paper.scope import Scope
from lloydformer.paper.trained_layers import layers, training_pieces


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """One piece; a full scope trains first."""
    return training_pieces(scope) | {"weights": partial(measured, scope)}


def measured(scope: Scope) -> Record:
    """The similarity of all matrices of each layer, and the matrices of the first layer."""
    found = layers(scope)
    thm, lrn = matrices(constructed(found[0])), matrices(found[0].circuit())
    return {
        "rows": [_compared(layer) for layer in found],
        "thm": {head: {name: written(thm[head][name]) for name in MATRICES} for head in HEADS},
        "lrn": {head: {name: written(lrn[head][name]) for name in "QKV"} for head in HEADS},
        "n_features": found[0].settings.n_features,
    }


def _compared(layer: Pretrained) -> Record:
    """Each learned matrix against the constructed one, and V_2 against the identity of position."""
    thm, lrn = matrices(constructed(layer)), matrices(layer.circuit())
    rows: Record = {
        f"{name}_{number}": similarity(lrn[head][name], thm[head][name])
        for number, head in enumerate(HEADS, start=1)
        for name in MATRICES
    }
    # the constructed V_3 is the identity of position
    rows["V_2 and position"] = similarity(lrn[HEADS[1]]["V"], thm[HEADS[2]]["V"])
    return rows


def similarity(learned: Float[Tensor, "e e"], built: Float[Tensor, "e e"]) -> Record:
    """Three measures, given that the constructed matrix `built` is diagonal.

    cosine: of the two matrices as vectors. dominance: mean absolute entry on the constructed
    diagonal, divided by that of the other entries in the rows and columns that `built` uses.
    share: the part of the squared norm of the whole matrix that lies on that diagonal.
    """
    nonzero = built != 0
    block = nonzero.any(dim=1, keepdim=True) & nonzero.any(dim=0)
    sizes = learned.abs()
    values = {
        "cosine": (learned * built).sum() / (learned.norm() * built.norm()),
        "dominance": sizes[nonzero].mean() / sizes[block & ~nonzero].mean(),
        "share": learned[nonzero].square().sum() / learned.square().sum(),
    }
    return {name: round(float(value), 4) for name, value in values.items()}


def result(found: Mapping[str, Record]) -> Record:
    """`rows` are those of the first layer, `others` those of the other layers."""
    one = found["weights"]
    return {**one, "rows": one["rows"][0], "others": one["rows"][1:]}
