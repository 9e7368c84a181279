"""fig:lrn-weights: the learned matrices beside the constructed ones."""

from collections.abc import Mapping, Sequence
from functools import partial

from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.pretrained import Pretrained
from lloydformer.paper.artefact import Artefact, Found, Piece, Table
from lloydformer.paper.heads import HEADS, MATRICES, constructed, matrices
from lloydformer.paper.layers import layers, trained
from lloydformer.paper.lrn_weights_claims import claims
from lloydformer.paper.lrn_weights_pictures import pictures
from lloydformer.paper.matrices import written
from lloydformer.paper.scope import Scope


def pieces(scope: Scope) -> Mapping[str, Piece]:
    first: dict[str, Piece] = {"training": partial(trained, scope)} if scope.full else {}
    return first | {"weights": partial(measured, scope)}


def measured(scope: Scope) -> Found:
    """How like the constructed ones the learned matrices are, and those of the first layer."""
    found = layers(scope)
    thm, lrn = matrices(constructed(found[0])), matrices(found[0].circuit())
    return {
        "rows": [_compared(layer) for layer in found],
        "thm": {head: {name: written(thm[head][name]) for name in MATRICES} for head in HEADS},
        "lrn": {head: {name: written(lrn[head][name]) for name in "QKV"} for head in HEADS},
        "n_features": found[0].settings.n_features,
    }


def _compared(layer: Pretrained) -> Found:
    """Each learned matrix against the constructed one, and V_2 against the identity of position."""
    thm, lrn = matrices(constructed(layer)), matrices(layer.circuit())
    rows: Found = {
        f"{name}_{number}": likeness(lrn[head][name], thm[head][name])
        for number, head in enumerate(HEADS, start=1)
        for name in MATRICES
    }
    # V_3 is constructed as the identity of position
    rows["V_2 and position"] = likeness(lrn[HEADS[1]]["V"], thm[HEADS[2]]["V"])
    return rows


def likeness(learned: Float[Tensor, "e e"], built: Float[Tensor, "e e"]) -> Found:
    """cosine: of both as vectors. dominance: within the rows and columns that the constructed
    matrix uses, the mean size of entries on its diagonal over that of the others. share: of the
    squared norm of the whole matrix, that on this diagonal.
    """
    there = built != 0
    block = there.any(dim=1, keepdim=True) & there.any(dim=0)
    sizes = learned.abs()
    values = {
        "cosine": (learned * built).sum() / (learned.norm() * built.norm()),
        "dominance": sizes[there].mean() / sizes[block & ~there].mean(),
        "share": learned[there].square().sum() / learned.square().sum(),
    }
    return {name: round(float(value), 4) for name, value in values.items()}


def result(found: Mapping[str, Found]) -> Found:
    """The rows are of the first layer; the others' are kept beside them."""
    one = found["weights"]
    return {**one, "rows": one["rows"][0], "others": one["rows"][1:]}


def tables(result: Found) -> Sequence[Table]:
    """Numbers for what the picture shows."""
    columns = ["Matrix", "cosine", "dominance of the diagonal", "squared norm on it"]
    return [
        Table(
            "Learned against constructed: cosine of the two matrices; mean size of the entries on "
            "the constructed diagonal over that of the others in its block; share of the squared "
            "norm on that diagonal (of a matrix without structure: 0, 1, at most 0.02)",
            columns,
            [
                [name, f"{row['cosine']:+.2f}", f"{row['dominance']:.1f}", f"{row['share']:.2f}"]
                for name, row in result["rows"].items()
            ],
        )
    ]


ARTEFACT = Artefact(
    label="lrn-weights",
    cites=("fig:lrn-weights",),
    title="Learned and constructed weights",
    about=(
        "The matrices Q, K, V and Q^T K of the four attentions, as constructed in thm:l2-clus-eu "
        "and as learned, for d = 32 and k = 10: all are 42 x 42."
    ),
    pieces=pieces,
    result=result,
    claims=claims,
    tables=tables,
    pictures=pictures,
)
