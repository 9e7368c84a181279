"""fig:lrn-weights: the learned matrices next to the constructed ones."""

from collections.abc import Mapping, Sequence
from functools import partial

from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.pretrained import Pretrained, available, load, read_card
from lloydformer.paper.artefact import Picture, Piece, Record, Scope, TextTable
from lloydformer.paper.attention_heads import (
    HEADS,
    MATRICES,
    construct_like,
    format_matrix,
    head_matrices,
    parse_matrix,
)
from lloydformer.paper.training_runs import load_layers, training_pieces
from lloydformer.paper.verdict import Verdict, beyond, claim, judge
from lloydformer.plots.heatmaps import weights
from lloydformer.plots.palette import INK, SIGNED_WORDS

LABEL = "lrn-weights"
# The text has no numbers, so these limits were chosen by hand. A diagonal is dominant if its
# entries are on average DOMINANT times larger than others; a matrix is diffuse if its dominance is
# below DIFFUSE; cosines above ALIKE count as similar, below UNLIKE as different.
DOMINANT, DIFFUSE = 5.0, 2.0
ALIKE, UNLIKE = 0.6, 0.2
# V_2 is also compared with the identity of position, which is the constructed V_3.
SECOND_VALUE = "V_2 and position"
CAPTION = (
    "Constructed [Thm] and learned [Lrn] weights of the four attentions, d = 32, k = 10, each "
    f"42 x 42 and with its own scale: {SIGNED_WORDS}. The thin lines separate the 32 dimensions of "
    "the position from the 10 of the assignment."
)


def pieces(scope: Scope) -> Mapping[str, Piece]:
    """Return one piece; a full scope trains first."""
    return training_pieces(scope) | {"weights": partial(measure, scope)}


def measure(scope: Scope) -> Record:
    """Return the similarity of all matrices of each layer, and the matrices of the first layer."""
    layers = load_layers(scope)
    thm, lrn = head_matrices(construct_like(layers[0])), head_matrices(layers[0].circuit())
    return {
        "rows": [_compare(layer) for layer in layers],
        "thm": {h: {name: format_matrix(thm[h][name]) for name in MATRICES} for h in HEADS},
        # without Q^T K, which `read_matrix` computes, to keep the file small
        "lrn": {h: {name: format_matrix(lrn[h][name]) for name in "QKV"} for h in HEADS},
        "n_features": layers[0].settings.n_features,
        # of every layer in the package, which differ in d and k
        "shipped": {name: dominances(_compare(load(name))) for name in available_layers()},
    }


def available_layers() -> list[str]:
    """Return the names of the layers in the package that are trained for one d and k."""
    return [name for name in available() if not read_card(name).is_symmetric]


def dominances(rows: Record) -> list[float]:
    """Return the dominance of the constructed diagonal of Q^T K, for each head."""
    return [rows[f"QtK_{head}"]["dominance"] for head in range(1, 5)]


def _compare(layer: Pretrained) -> Record:
    """Return the similarity of each learned matrix to the constructed one, by name."""
    thm, lrn = head_matrices(construct_like(layer)), head_matrices(layer.circuit())
    rows: Record = {
        f"{name}_{number}": similarity(lrn[head][name], thm[head][name])
        for number, head in enumerate(HEADS, start=1)
        for name in MATRICES
    }
    rows[SECOND_VALUE] = similarity(lrn["encoder_self"]["V"], thm["decoder_cross"]["V"])
    return rows


def similarity(learned: Float[Tensor, "e e"], built: Float[Tensor, "e e"]) -> Record:
    """Return three measures, given that the constructed matrix `built` is diagonal.

    cosine: of the two matrices as vectors. dominance: mean absolute entry on the constructed
    diagonal, divided by that of the other entries in the rows and columns that `built` uses.
    share: the part of the squared norm of the whole matrix that lies on that diagonal.
    """
    # Only rows and columns that the construction uses are compared: elsewhere learned entries may
    # have no effect and keep their initial values (see the note on V_2).
    nonzero = built != 0
    block = nonzero.any(dim=1, keepdim=True) & nonzero.any(dim=0)
    sizes = learned.abs()
    values = {
        "cosine": (learned * built).sum() / (learned.norm() * built.norm()),
        "dominance": sizes[nonzero].mean() / sizes[block & ~nonzero].mean(),
        "share": learned[nonzero].square().sum() / learned.square().sum(),
    }
    return {name: round(float(value), 4) for name, value in values.items()}


def combine(outputs: Mapping[str, Record]) -> Record:
    """Return the output; `rows` are those of the first layer, `others` those of other layers."""
    output = outputs["weights"]
    return {**output, "rows": output["rows"][0], "others": output["rows"][1:]}


def verdicts(result: Record) -> Sequence[Verdict]:
    """Return verdicts on points (i) to (iii) of the text, then on other trained layers."""
    rows = result["rows"]
    dominant, third, second = dominant_heads(dominances(rows)), rows["QtK_3"], rows[SECOND_VALUE]
    alike = max(abs(rows[f"{name}_{head}"]["cosine"]) for name in "QK" for head in range(1, 5))
    words = ", ".join(f"{dominance:.1f}" for dominance in dominances(rows))
    v1, v2, v3, v4 = (rows[f"V_{head}"]["cosine"] for head in range(1, 5))
    d = result["n_features"]
    block = parse_matrix(result["lrn"]["encoder_self"]["V"])[:d, :d]
    position_cosine = float(block.trace() / (block.norm() * d**0.5))

    def judge_layer(name: str, here: str, holds: bool, note: str = "") -> Verdict:
        # one other layer can show what the paper saw in its own, but not refute it
        return claim(name, here, judge(holds, enough=bool(result["others"])), note)

    return [
        judge_layer(
            "lrn-weights.query-key-products",
            f"{len(dominant)} of 4: dominance {words}; Q and K have cosines of at most {alike:.2f}",
            # the text names heads 1, 2 and 4: point (ii) is about head 3
            dominant == [1, 2, 4] and alike < UNLIKE,
            "Dominance: mean size on the constructed diagonal over that of the rest of its block; "
            f"above {DOMINANT:g} counts as dominant. Our layer has Euclidean scores in all heads "
            "and maps with a bias, so that its scores also depend on |K z + b|^2.",
        ),
        judge_layer(
            "lrn-weights.third-product",
            f"dominance {third['dominance']:.1f}, cosine {third['cosine']:+.2f}",
            third["dominance"] < DIFFUSE and third["cosine"] < UNLIKE,
        ),
        judge_layer(
            "lrn-weights.center-values",
            f"cosines {v3:+.2f} and {v4:+.2f}",
            min(v3, v4) > ALIKE,
            f"Above {ALIKE:g} counts as aligned.",
        ),
        judge_layer(
            "lrn-weights.assignment-values",
            f"cosines {v1:+.2f} and {v2:+.2f}; on the diagonal of the position V_2 "
            f"has dominance {second['dominance']:.1f}; its cosine with I^{{:d}} is "
            f"{second['cosine']:.2f}, in the d rows and columns of the position "
            f"{position_cosine:.2f}",
            max(abs(v1), abs(v2)) < UNLIKE and second["dominance"] > DOMINANT,
            "Dominant: yes. Close to I^{:d}: in the rows and columns of the position, but as a "
            f"whole below our threshold of {ALIKE:g}. Tokens are embedded again before each step, "
            "so the points' scratch dimensions are zero, and the columns of V_2 that read them "
            "have no effect and keep their initial values.",
        ),
        judge_other_layers(result),
    ]


def judge_other_layers(result: Record) -> Verdict:
    """Return the finding on points (i) and (ii) for the layers in the package, and for new ones."""
    alike = {name: dominant_heads(found) for name, found in result["shipped"].items()}
    same = [name for name, heads in alike.items() if heads == [1, 2, 4]]
    here = f"{len(same)} of the {len(alike)} layers in the package have them: {', '.join(same)}"
    if result["others"]:
        rows = [result["rows"], *result["others"]]
        again = sum(dominant_heads(dominances(one)) == [1, 2, 4] for one in rows)
        here += f"; of those trained anew {again} of {len(rows)}"
    rest = [
        f"{name} {', '.join(map(str, heads)) or 'none'}"
        for name, heads in alike.items()
        if name not in same
    ]
    note = f"It depends on the size. The others have: {'; '.join(rest)}." if rest else ""
    return beyond("lrn-weights.other-layers", here, note)


def dominant_heads(found: Sequence[float]) -> list[int]:
    """Return the heads whose Q^T K has a dominant diagonal, from their dominances."""
    return [head for head, dominance in enumerate(found, start=1) if dominance > DOMINANT]


def tables(result: Record) -> Sequence[TextTable]:
    """Return one table: a row for each matrix."""
    return [
        TextTable(
            "Learned against constructed: cosine of the two matrices; mean size of the entries on "
            "the constructed diagonal over that of the others in its block; share of the squared "
            "norm on that diagonal (of a matrix without structure: 0, 1, at most 0.02)",
            ["Matrix", "cosine", "dominance of the diagonal", "squared norm on it"],
            [
                [name, f"{row['cosine']:+.2f}", f"{row['dominance']:.1f}", f"{row['share']:.2f}"]
                for name, row in result["rows"].items()
            ],
        )
    ]


def pictures(result: Record) -> Sequence[Picture]:
    """Return one figure: a row for each head, constructed and learned matrices side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.2), layout="constrained")
    grid = figure.subplots(len(HEADS), 2 * len(MATRICES))
    columns = [(name, source) for name in MATRICES for source in ("thm", "lrn")]
    border = result["n_features"] - 0.5
    for number, (axes, head) in enumerate(zip(grid, HEADS, strict=True), start=1):
        for ax, (name, source) in zip(axes, columns, strict=True):
            weights(read_matrix(result, head, name, source), ax)
            ax.set(xlabel="", ylabel="")
            ax.axhline(border, color=INK, linewidth=0.4)
            ax.axvline(border, color=INK, linewidth=0.4)
            product = rf"Q_{number}^\top K_{number}"
            symbol = product if name == "QtK" else f"{name}_{number}"
            ax.set_title(f"${symbol}$ [{source.title()}]", fontsize=9)
        axes[0].set_ylabel(head.replace("_", "\n"), fontsize=9)
    return [Picture(LABEL, figure, CAPTION)]


def read_matrix(result: Record, head: str, name: str, source: str) -> Float[Tensor, "e e"]:
    """Return one matrix of the result; a product Q^T K that is not saved is computed."""
    saved = result[source][head]
    if name in saved:
        return parse_matrix(saved[name])
    return parse_matrix(saved["Q"]).T @ parse_matrix(saved["K"])
