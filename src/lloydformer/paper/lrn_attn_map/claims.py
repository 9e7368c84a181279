"""The claims of fig:lrn-attn-map: the points (i) to (iii) of the text as measurements."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, Record
from lloydformer.paper.attention_heads import HEADS

SPARSE = 0.25
"""A map is sparse if a query attends to at most this share of the keys."""
FAR = 0.3
"""Maps differ significantly if their total variation is above this."""
DIAGONAL = 0.9
"""A map is diagonal if the weight on the diagonal is above this."""


def claims(result: Record) -> Sequence[Claim]:
    """Sparse maps, diagonal self-attention, different cross-attention."""
    rows = result["rows"]
    sparse = [_sparse(rows[head], head) for head in HEADS]
    self_maps = [_diagonal(rows[head], head) for head in ("encoder_self", "decoder_self")]
    return [*sparse, *self_maps, *_cross(rows)]


def _sparse(row: Record, head: str) -> Claim:
    return Claim(
        f"(i) The learned map of {_name(head)} is quite sparse, with soft-max and gamma = 1.",
        "sparse", f"a query attends to {row['keys']:.1f} of {row['of']:.0f} keys",
        row["keys"] / row["of"] <= SPARSE,
        f"The constructed map attends to {row['built_keys']:.1f}.",
    )  # fmt: skip


def _diagonal(row: Record, head: str) -> Claim:
    """`mass` is the weight on the diagonal, since the constructed map is the identity."""
    holds = row["mass"] > DIAGONAL
    note = (
        f"The largest weight is on the diagonal for {100 * row['agreement']:.0f} % of the points, "
        f"which is what the eye sees, but it is only {row['largest']:.2f}: a point attends to "
        f"about {row['keys']:.0f} points, itself first."
    )
    return Claim(
        f"(ii) The learned map of {_name(head)} matches the constructed diagonal.",
        "diagonal", f"weight on the diagonal {row['mass']:.2f}", holds,
        "" if holds else note,
    )  # fmt: skip


def _cross(rows: Record) -> list[Claim]:
    encoder, decoder = rows["encoder_cross"], rows["decoder_cross"]
    both = f"distance {encoder['distance']:.2f} and {decoder['distance']:.2f}"
    return [
        Claim(
            "(iii) Learned and constructed cross-attention maps differ significantly.",
            "different", both, min(encoder["distance"], decoder["distance"]) > FAR,
            f"{100 * encoder['agreement']:.0f} % of the points have their largest weight at their "
            "nearest center.",
        ),
        Claim(
            "(iii) The maps of the assignment update match better than those of the center update.",
            "encoder nearer", both, encoder["distance"] < decoder["distance"],
            f"A center gives {100 * decoder['mass']:.0f} % of its weight to its own points.",
        ),
    ]  # fmt: skip


def _name(head: str) -> str:
    kind = {"cross": "cross-attention", "self": "self-attention"}
    side, which = head.split("_")
    return f"the {side}'s {kind[which]}"
