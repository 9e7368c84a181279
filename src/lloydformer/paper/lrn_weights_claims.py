"""What the text says of fig:lrn-weights, point by point, as measurements."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, Found

DOMINANT = 5.0
"""On a dominant diagonal entries are on average so many times larger than beside it."""
DIFFUSE = 2.0
ALIKE, UNLIKE = 0.6, 0.2
"""Cosines of matrices that look alike, and of those that do not."""


def claims(result: Found) -> Sequence[Claim]:
    rows = result["rows"]
    return [*_scores(rows), *_center_values(rows), *_point_values(rows), _all_layers(result)]


def _scores(rows: Found) -> list[Claim]:
    dominant = dominant_scores(rows)
    alike = max(abs(rows[f"{name}_{head}"]["cosine"]) for name in "QK" for head in range(1, 5))
    third = rows["QtK_3"]
    return [
        Claim(
            "(i) Q^T K matches the dominant diagonal of the construction in 3 of 4 cases.",
            "3 of 4",
            f"{len(dominant)} of 4: {_words(rows, 'QtK', (1, 2, 3, 4))}",
            dominant == [1, 2, 4],
            "Dominance: mean size on the constructed diagonal over that of the rest of its block. "
            "Euclidean scores also depend on |K z + b|^2, which the figure does not show.",
        ),
        Claim(
            "(i) ... although the learned Q and K do not look similar to the constructed ones.",
            "not similar", f"largest cosine {alike:.2f}", alike < UNLIKE,
            "As rem:inf-params has it: a rotation of both leaves every score as it is.",
        ),
        Claim(
            "(ii) Q_3^T K_3, of the centers' cross-attention, is diffuse, unlike the construction.",
            "diffuse", f"dominance {third['dominance']:.1f}, cosine {third['cosine']:+.2f}",
            third["dominance"] < DIFFUSE and third["cosine"] < UNLIKE,
        ),
    ]  # fmt: skip


def _center_values(rows: Found) -> list[Claim]:
    return [
        Claim(
            f"(iii) The learned V_{head} of the center update aligns with the constructed one.",
            "aligned", f"cosine {rows[f'V_{head}']['cosine']:+.2f}",
            rows[f"V_{head}"]["cosine"] > ALIKE,
            f"{100 * rows[f'V_{head}']['share']:.0f} % of its squared norm lies on the constructed "
            "diagonal.",
        )
        for head in (3, 4)
    ]  # fmt: skip


def _point_values(rows: Found) -> list[Claim]:
    differ = [
        Claim(
            f"(iii) The learned V_{head} of the assignment update differs from the constructed "
            "one.",
            "different", f"cosine {rows[f'V_{head}']['cosine']:+.2f}",
            abs(rows[f"V_{head}"]["cosine"]) < UNLIKE,
        )
        for head in (1, 2)
    ]  # fmt: skip
    second = rows["V_2 and position"]
    return [
        *differ,
        Claim(
            "(iii) V_2 has a dominant diagonal, close to that of the position.",
            "dominant diagonal",
            f"dominance {second['dominance']:.1f}, cosine {second['cosine']:+.2f}",
            second["dominance"] > DOMINANT,
            "Tokens are embedded anew before each step, so the points' scratch is zero there: the "
            "columns of V_2 that read it never act and stay as they were drawn, and the "
            "constructed V_2, which reads only it, would add nothing.",
        ),
    ]


def _all_layers(result: Found) -> Claim:
    """The full protocol trains several layers."""
    every = [result["rows"], *result["others"]]
    same = sum(dominant_scores(rows) == [1, 2, 4] for rows in every)
    return Claim(
        "The pattern of (i) and (ii) belongs to the architecture, not to one trained layer.",
        "one layer shown", f"{same} of {len(every)} layers looked at have it", same == len(every),
        "" if len(every) > 1 else "Only the layer in the package; --full trains more.",
    )  # fmt: skip


def dominant_scores(rows: Found) -> list[int]:
    """The heads whose Q^T K has a dominant diagonal."""
    return [head for head in range(1, 5) if rows[f"QtK_{head}"]["dominance"] > DOMINANT]


def _words(rows: Found, name: str, heads: Sequence[int]) -> str:
    values = ", ".join(f"{rows[f'{name}_{head}']['dominance']:.1f}" for head in heads)
    return f"dominance {values}"
