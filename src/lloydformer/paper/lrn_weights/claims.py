"""The claims of fig:lrn-weights: the points (i) to (iii) of the text as measurements."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Claim, Record

DOMINANT = 5.0
"""A diagonal is dominant if its entries are on average this many times larger than others."""
DIFFUSE = 2.0
"""A matrix is diffuse if its dominance is below this."""
ALIKE, UNLIKE = 0.6, 0.2
"""Cosines above ALIKE count as similar, below UNLIKE as different."""


def claims(result: Record) -> Sequence[Claim]:
    """The points of the text, then whether other trained layers show them too."""
    rows = result["rows"]
    return [*_scores(rows), *_center_values(rows), *_point_values(rows), _all_layers(result)]


def _scores(rows: Record) -> list[Claim]:
    dominant = dominant_scores(rows)
    alike = max(abs(rows[f"{name}_{head}"]["cosine"]) for name in "QK" for head in range(1, 5))
    third = rows["QtK_3"]
    return [
        Claim(
            "(i) Q^T K matches the dominant diagonal of the construction in 3 of 4 cases.",
            "3 of 4",
            f"{len(dominant)} of 4: {_dominances(rows, 'QtK', (1, 2, 3, 4))}",
            dominant == [1, 2, 4],
            "Dominance: mean size on the constructed diagonal over that of the rest of its block. "
            "Euclidean scores also depend on |K z + b|^2, which the figure does not show.",
        ),
        Claim(
            "(i) ... although the learned Q and K do not look similar to the constructed ones.",
            "not similar", f"largest cosine {alike:.2f}", alike < UNLIKE,
            "See rem:inf-params: a rotation of both does not change any score.",
        ),
        Claim(
            "(ii) Q_3^T K_3, of the centers' cross-attention, is diffuse, unlike the construction.",
            "diffuse", f"dominance {third['dominance']:.1f}, cosine {third['cosine']:+.2f}",
            third["dominance"] < DIFFUSE and third["cosine"] < UNLIKE,
        ),
    ]  # fmt: skip


def _center_values(rows: Record) -> list[Claim]:
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


def _point_values(rows: Record) -> list[Claim]:
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
            "Tokens are embedded anew before each step, so the points' scratch dimensions are "
            "zero. The columns of V_2 that read them have no effect and keep their initial values; "
            "the constructed V_2, which reads only them, would add nothing.",
        ),
    ]


def _all_layers(result: Record) -> Claim:
    """Points (i) and (ii) for every layer; only the full protocol has several."""
    every = [result["rows"], *result["others"]]
    same = sum(dominant_scores(rows) == [1, 2, 4] for rows in every)
    return Claim(
        "The pattern of (i) and (ii) belongs to the architecture, not to one trained layer.",
        "one layer shown", f"{same} of {len(every)} layers have it", same == len(every),
        "" if len(every) > 1 else "Only the layer in the package; --full trains more.",
    )  # fmt: skip


def dominant_scores(rows: Record) -> list[int]:
    """The heads whose Q^T K has a dominant diagonal."""
    return [head for head in range(1, 5) if rows[f"QtK_{head}"]["dominance"] > DOMINANT]


def _dominances(rows: Record, name: str, heads: Sequence[int]) -> str:
    values = ", ".join(f"{rows[f'{name}_{head}']['dominance']:.1f}" for head in heads)
    return f"dominance {values}"
