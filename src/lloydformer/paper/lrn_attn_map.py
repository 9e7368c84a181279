"""fig:lrn-attn-map: the attention maps of the learned heads next to the constructed ones."""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import avg_pool2d

from lloydformer.learning.evaluation import draw_unseen
from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.attention_heads import (
    HEADS,
    Maps,
    attention_maps,
    construct_like,
    format_matrix,
    parse_matrix,
)
from lloydformer.paper.training_runs import load_layers, training_pieces
from lloydformer.paper.verdict import Answer, Verdict, beyond, claim, judge
from lloydformer.plots.heatmaps import attention_map

LABEL = "lrn-attn-map"
# Number of tasks in the figure, and of their points in maps of cross-attention. One cell of the
# picture of the encoder's self-attention is the mean of POOLED x POOLED points.
N_SHOWN, N_POINTS, POOLED = 4, 30, 8
# The text has no numbers, so these limits were chosen by hand. A map is sparse if a query attends
# to at most this share of the keys; it looks diagonal if more than this share of its rows have
# their largest weight on the diagonal; maps differ significantly if their total variation is above
# FAR.
SPARSE, DIAGONAL, FAR = 0.25, 0.9, 0.3
CAPTION = (
    "One update of four tasks with 512 points: attention maps as constructed [Thm] and as learned "
    "[Lrn], a row for each query, each map with its own scale from white (0) to its largest "
    f"weight. Cross-attention is shown for {N_POINTS} of the points; in the encoder's "
    f"self-attention a cell is the mean weight of {POOLED} by {POOLED} points."
)
TITLES = {
    "encoder_cross": f"encoder cross\n{N_POINTS} × 10",
    "encoder_self": "encoder self\n512 × 512",
    "decoder_cross": f"decoder cross\n10 × {N_POINTS}",
    "decoder_self": "decoder self\n10 × 10",
}


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return the piece `maps`; for a full scope, and one before it that trains."""
    return training_pieces(scope) | {"maps": partial(measure, scope)}


def measure(scope: Scope) -> Record:
    """Return the mean similarity over all tasks in one update, and the maps of N_SHOWN tasks."""
    # one layer, as in the figure; a full scope trains ten and returns the first three
    layer = load_layers(scope)[0]
    thm, lrn = construct_like(layer).to(scope.device), layer.circuit().to(scope.device)
    count = scope.count(20, 320)
    points, centers = draw_unseen(layer.settings.tasks, "normal", count, scope.seed, scope.device)
    measures: list[Record] = []
    shown: list[Record] = []
    for x, c in zip(points[0], centers[0], strict=True):
        # the constructed circuit in float64, so that rounding decides none of its maxima
        built, learned = attention_maps(thm, x.double(), c.double()), attention_maps(lrn, x, c)
        measures.append({head: similarity(learned[head], built[head]) for head in HEADS})
        if len(shown) < N_SHOWN:
            shown.append({"thm": _reduce(built), "lrn": _reduce(learned)})
    means = {
        head: {
            name: round(sum(one[head][name] for one in measures) / count, 4)
            for name in measures[0][head]
        }
        for head in HEADS
    }
    return {"rows": means, "n_tasks": count, "shown": shown}


def similarity(learned: Float[Tensor, "q m"], built: Float[Tensor, "q m"]) -> Record:
    """Return means over the queries (rows) of a learned map, compared to the constructed `built`.

    keys, built_keys: how many keys a query attends to, as the exponential of the entropy. of:
    number of all keys. largest: the largest weight. agreement: share of queries whose largest
    weight is where the constructed map has weight. mass: the weight there. distance: total
    variation, half the sum of absolute differences.
    """
    nonzero = built > 0
    top = learned.argmax(dim=-1, keepdim=True)
    values = {
        # exp(entropy) is m for equal weights on m keys; entr is 0 at 0, where x log x is NaN
        "keys": torch.special.entr(learned).sum(dim=-1).exp(),
        "built_keys": torch.special.entr(built).sum(dim=-1).exp(),
        "largest": learned.amax(dim=-1),
        "agreement": nonzero.gather(1, top).double(),
        "mass": (learned * nonzero).sum(dim=-1),
        "distance": (learned - built).abs().sum(dim=-1) / 2,
    }
    means = {name: float(value.mean()) for name, value in values.items()}
    return {**means, "of": learned.shape[1]}


def _reduce(maps: Maps) -> Record:
    """Return maps small enough for a file: cross-attention of few points, self-attention pooled."""
    parts = {
        "encoder_cross": maps["encoder_cross"][:N_POINTS],
        "encoder_self": avg_pool2d(maps["encoder_self"][None], POOLED)[0],
        "decoder_cross": maps["decoder_cross"][:, :N_POINTS],
        "decoder_self": maps["decoder_self"],
    }
    # weights below 1e-5 are white in the picture, and 0 is one character in the file
    return {head: format_matrix(m.where(m > 1e-5, 0), digits=2) for head, m in parts.items()}


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return the output of the piece `maps`."""
    return dict(outputs["maps"])


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on points (i) to (iii) of the text, and on the weights themselves."""
    rows = result["rows"]
    keys = [f"{h.replace('_', ' ')} {rows[h]['keys']:.1f} of {rows[h]['of']:.0f}" for h in HEADS]
    encoder, decoder = rows["encoder_cross"], rows["decoder_cross"]
    points, centers = rows["encoder_self"], rows["decoder_self"]
    both = f"total variation {encoder['distance']:.2f} (assignment) and " + (
        f"{decoder['distance']:.2f} (centers)"
    )

    def judge_layer(name: str, here: str, holds: bool, note: str = "") -> Verdict:
        # one other layer can show what the paper saw in its own, but not refute it
        return claim(name, here, judge(holds, enough=False), note)

    return [
        judge_layer(
            "lrn-attn-map.sparse",
            f"keys that a query attends to: {', '.join(keys)}",
            all(rows[head]["keys"] / rows[head]["of"] <= SPARSE for head in HEADS),
            f"Up to {100 * SPARSE:.0f} % of the keys, by the exponential of the entropy, counts as "
            "quite sparse.",
        ),
        judge_diagonal(points, centers),
        judge_layer(
            "lrn-attn-map.cross-differs",
            both,
            min(encoder["distance"], decoder["distance"]) > FAR,
            f"Above {FAR:g} counts as significant.",
        ),
        judge_layer(
            "lrn-attn-map.assignment-closer",
            both,
            encoder["distance"] < decoder["distance"] and decoder["distance"] > FAR,
        ),
        beyond(
            "lrn-attn-map.diagonal-weight",
            f"encoder {points['mass']:.2f}, decoder {centers['mass']:.2f}; 1 would be the identity",
            f"A point attends to about {points['keys']:.0f} points; for "
            f"{100 * points['agreement']:.0f} % of the points the largest weight is their own.",
        ),
        beyond(
            "lrn-attn-map.cross-weight",
            f"assignment {encoder['mass']:.2f}, centers {decoder['mass']:.2f}",
            f"{100 * encoder['agreement']:.0f} % of the points have their largest weight at their "
            "nearest center.",
        ),
    ]


def judge_diagonal(points: Record, centers: Record) -> Verdict:
    """Judge self-attention by its largest weights and by all; the text does not say which."""
    first, second = (100 * row["agreement"] for row in (points, centers))
    answer = judge(min(first, second) > 100 * DIAGONAL, enough=False)
    if answer is Answer.HOLDS and max(points["distance"], centers["distance"]) > FAR:
        answer = Answer.OPEN
    return claim(
        "lrn-attn-map.diagonal",
        f"the largest weight is on the diagonal for {first:.0f} % of the points and {second:.0f} % "
        f"of the centers; total variation {points['distance']:.2f} and {centers['distance']:.2f}",
        answer,
    )


def tables(result: Record) -> Sequence[TextTable]:
    """Return one table: a row for each head."""
    rows = []
    for head, row in result["rows"].items():
        keys = (f"{row['keys']:.1f} of {row['of']:.0f}", f"{row['built_keys']:.1f}")
        numbers = (f"{row[name]:.3f}" for name in ("largest", "mass", "distance"))
        rows.append([head.replace("_", " "), *keys, *numbers])
    return [
        TextTable(
            f"Learned maps, means over {result['n_tasks']} tasks; keys attended to is the "
            "exponential of the entropy; the distance is total variation, between 0 and 1",
            [
                "Attention",
                "keys attended to",
                "constructed",
                "largest weight",
                "weight where the construction has it",
                "distance to the constructed map",
            ],
            rows,
        )
    ]


def pictures(result: Record) -> Sequence[Picture]:
    """Return one figure: a row for each task, constructed and learned maps side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.6), layout="constrained")
    grid = figure.subplots(len(result["shown"]), 2 * len(HEADS), squeeze=False)
    columns = [(head, source) for head in HEADS for source in ("thm", "lrn")]
    for number, (axes, task) in enumerate(zip(grid, result["shown"], strict=True), start=1):
        for ax, (head, source) in zip(axes, columns, strict=True):
            attention_map(parse_matrix(task[source][head]), ax)
            ax.set(xlabel="", ylabel="")
            if number == 1:
                ax.set_title(f"{TITLES[head]}\n[{source.title()}]", fontsize=8)
        axes[0].set_ylabel(f"task {number}")
    return [Picture(LABEL, figure, CAPTION)]
