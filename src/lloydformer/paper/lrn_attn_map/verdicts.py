"""The verdicts on fig:lrn-attn-map: the points (i) to (iii) of the text as measurements."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record
from lloydformer.paper.attention_heads import HEADS
from lloydformer.paper.verdict import Answer, Verdict, beyond, claim, judged

_TEXT = "sec:results:train"
SPARSE = 0.25
"""A map is sparse if a query attends to at most this share of the keys."""
DIAGONAL = 0.9
"""A map looks diagonal if this share of its rows have their largest weight on the diagonal."""
FAR = 0.3
"""Maps differ significantly if their total variation is above this."""


def verdicts(result: Record) -> Sequence[Verdict]:
    """Sparse maps, diagonal self-attention, different cross-attention."""
    rows = result["rows"]
    return [_sparse(rows), _diagonal(rows), *_cross(rows), *_beyond(rows)]


def _sparse(rows: Record) -> Verdict:
    keys = (f"{_name(h)} {rows[h]['keys']:.1f} of {rows[h]['of']:.0f}" for h in HEADS)
    return _one_layer(
        "All the learned attention maps are quite sparse even with a softmax attention with "
        "γ = 1, implying that the transformer learned to utilize sparse attention maps (as in "
        "thm:l2-clus-eu) without explicitly requiring the limiting softmax attention.",
        f"keys that a query attends to: {', '.join(keys)}",
        all(rows[head]["keys"] / rows[head]["of"] <= SPARSE for head in HEADS),
        f"Up to {100 * SPARSE:.0f} % of the keys, by the exponential of the entropy, counts as "
        "quite sparse.",
    )  # fmt: skip


def _diagonal(rows: Record) -> Verdict:
    """By the place of the largest weight, and by all weights; the text does not say which."""
    both = [rows[head] for head in ("encoder_self", "decoder_self")]
    first, second = (100 * row["agreement"] for row in both)
    looks = judged(min(first, second) > 100 * DIAGONAL, enough=False)
    far = looks is Answer.HOLDS and max(row["distance"] for row in both) > FAR
    return claim(
        "The learned self-attention maps for both the updates in eq:l2-trf-updates seem to match "
        "the constructed one quite well with a diagonal attention map.",
        _TEXT,
        f"the largest weight is on the diagonal for {first:.0f} % of the points and {second:.0f} % "
        f"of the centers; total variation {both[0]['distance']:.2f} and {both[1]['distance']:.2f}",
        Answer.OPEN if far else looks,
        "The eye sees the largest weights, and they are on the diagonal. By the measure of the "
        "next row, all weights, the centers' map is the constructed one and the points' is not. "
        "The text does not say how it compares.",
    )  # fmt: skip


def _cross(rows: Record) -> list[Verdict]:
    encoder, decoder = (rows[head]["distance"] for head in ("encoder_cross", "decoder_cross"))
    both = f"total variation {encoder:.2f} (assignment) and {decoder:.2f} (centers)"
    return [
        _one_layer(
            "The learned and constructed cross-attention maps differ significantly.",
            both, min(encoder, decoder) > FAR, f"Above {FAR:g} counts as significant.",
        ),
        _one_layer(
            "The learned assignment update attention maps [...] visually appear to better match "
            "the constructed maps, while the learned center update attention map [...] differs "
            "significantly from the constructed one.",
            both, encoder < decoder and decoder > FAR, "",
        ),
    ]  # fmt: skip


def _one_layer(quote: str, here: str, holds: bool, note: str) -> Verdict:
    """A sentence on the paper's layer, which one other layer can show but not refute."""
    return claim(quote, _TEXT, here, judged(holds, enough=False), note)


def _beyond(rows: Record) -> list[Verdict]:
    encoder, decoder = rows["encoder_self"], rows["decoder_self"]
    cross = rows["encoder_cross"], rows["decoder_cross"]
    return [
        beyond(
            "How much weight has the diagonal in self-attention?",
            f"encoder {encoder['mass']:.2f}, decoder {decoder['mass']:.2f}; 1 would be the "
            "identity",
            f"A point attends to about {encoder['keys']:.0f} points, itself first.",
        ),
        beyond(
            "How much weight of cross-attention is where the construction has it?",
            f"assignment {cross[0]['mass']:.2f}, centers {cross[1]['mass']:.2f}",
            f"{100 * cross[0]['agreement']:.0f} % of the points have their largest weight at their "
            "nearest center.",
        ),
    ]  # fmt: skip


def _name(head: str) -> str:
    return head.replace("_", " ")
