"""The verdicts on fig:lrn-weights: the points (i) to (iii) of the text as measurements."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Record
from lloydformer.paper.attention_heads import HEADS
from lloydformer.paper.matrix_text import read
from lloydformer.paper.verdict import Verdict, beyond, claim, judged

_TEXT = "sec:results:train"
DOMINANT = 5.0
"""A diagonal is dominant if its entries are on average this many times larger than others."""
DIFFUSE = 2.0
"""A matrix is diffuse if its dominance is below this."""
ALIKE, UNLIKE = 0.6, 0.2
"""Cosines above ALIKE count as similar, below UNLIKE as different."""


def verdicts(result: Record) -> Sequence[Verdict]:
    """The points of the text, then whether other trained layers show them too."""
    enough = bool(result["others"])
    found = (_form(result["rows"]), _diffuse(result["rows"]), *_values(result))
    sentences = [
        claim(quote, _TEXT, here, judged(holds, enough), note) for quote, here, holds, note in found
    ]
    return [*sentences, _all_layers(result)]


_Point = tuple[str, str, bool, str]
"""A sentence, what was measured, whether it holds, and a note."""


def _form(rows: Record) -> _Point:
    dominant = dominant_scores(rows)
    alike = max(abs(rows[f"{name}_{head}"]["cosine"]) for name in "QK" for head in range(1, 5))
    values = ", ".join(f"{rows[f'QtK_{head}']['dominance']:.1f}" for head in range(1, 5))
    return (
        "The learned Q_μ^⊤ K_μ matrices match the dominant diagonal form of the theoretical "
        "constructions in 3/4 cases even though the learned Q_μ, K_μ matrices do not look similar "
        "to the constructed ones.",
        f"{len(dominant)} of 4: dominance {values}; Q and K have cosines of at most {alike:.2f}",
        dominant == [1, 2, 4] and alike < UNLIKE,
        "Dominance: mean size on the constructed diagonal over that of the rest of its block; "
        f"above {DOMINANT:g} counts as dominant. Our layer has Euclidean scores in all heads "
        "and maps with a bias, so that its scores also depend on |K z + b|^2.",
    )


def _diffuse(rows: Record) -> _Point:
    third = rows["QtK_3"]
    return (
        "The learned Q_3^⊤ K_3 for the cross-attention in the cluster center update appears "
        "significantly different (more diffuse) than the constructed I_{d+k}^{d+1:} in "
        "thm:l2-clus-eu, implying that the learned model updates the centers differently than "
        "Lloyd's.",
        f"dominance {third['dominance']:.1f}, cosine {third['cosine']:+.2f}",
        third["dominance"] < DIFFUSE and third["cosine"] < UNLIKE,
        "That the centers are updated differently: see fig:lrn-attn-map.",
    )


def _values(result: Record) -> list[_Point]:
    rows = result["rows"]
    cosine = {head: rows[f"V_{head}"]["cosine"] for head in range(1, 5)}
    second = rows["V_2 and position"]
    return [
        (
            "The learned value matrices (V_3, V_4) in the center update (cross- and self- "
            "attention, respectively) align with the constructed ones.",
            f"cosines {cosine[3]:+.2f} and {cosine[4]:+.2f}",
            min(cosine[3], cosine[4]) > ALIKE,
            f"Above {ALIKE:g} counts as aligned.",
        ),
        (
            "However, the value matrices for the assignment updates (V_1, V_2) appear to differ "
            "from the constructions, especially with the self-attention V_2 having a dominant "
            "diagonal form (close to I_{d+k}^{:d}) that is orthogonal to the constructed "
            "-I_{d+k}^{d+1:}.",
            f"cosines {cosine[1]:+.2f} and {cosine[2]:+.2f}; on the diagonal of the position V_2 "
            f"has dominance {second['dominance']:.1f}; its cosine with I^{{:d}} is "
            f"{second['cosine']:.2f}, in the d rows and columns of the position "
            f"{_position_cosine(result):.2f}",
            max(abs(cosine[1]), abs(cosine[2])) < UNLIKE and second["dominance"] > DOMINANT,
            "Dominant: yes. Close to I^{:d}: in the rows and columns of the position, but as a "
            f"whole below our threshold of {ALIKE:g}. Tokens are embedded anew before each step, "
            "so the points' scratch dimensions are zero, and the columns of V_2 that read them "
            "have no effect and keep their initial values.",
        ),
    ]


def _position_cosine(result: Record) -> float:
    """The cosine of V_2 with the identity, in the block of the position."""
    d = result["n_features"]
    block = read(result["lrn"][HEADS[1]]["V"])[:d, :d]
    return float(block.trace() / (block.norm() * d**0.5))


def _all_layers(result: Record) -> Verdict:
    """Points (i) and (ii) for every layer; only the full protocol has several."""
    every = [result["rows"], *result["others"]]
    same = sum(dominant_scores(rows) == [1, 2, 4] for rows in every)
    question = "Do other trained layers have the same three dominant diagonals?"
    if len(every) == 1:
        return beyond(question, "one layer is no evidence; --full trains more", undecided=True)
    return beyond(question, f"{same} of {len(every)} layers have them")


def dominant_scores(rows: Record) -> list[int]:
    """The heads whose Q^T K has a dominant diagonal."""
    return [head for head in range(1, 5) if rows[f"QtK_{head}"]["dominance"] > DOMINANT]
