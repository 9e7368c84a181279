"""fig:lrn-attn-map: one row for each task, constructed and learned maps side by side."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.attention_heads import HEADS
from lloydformer.paper.matrix_text import read
from lloydformer.plots.attention import attention_map
from lloydformer.plots.axes import require_matplotlib

CAPTION = (
    "One update of four tasks with 512 points: attention maps as constructed [Thm] and as learned "
    "[Lrn], a row for each query, each map with its own scale from white (0) to its largest "
    "weight. Cross-attention is shown for 30 of the points; in the encoder's self-attention a cell "
    "is the mean weight of 8 by 8 points."
)
TITLES = {
    "encoder_cross": "encoder cross\n30 × 10",
    "encoder_self": "encoder self\n512 × 512",
    "decoder_cross": "decoder cross\n10 × 30",
    "decoder_self": "decoder self\n10 × 10",
}


def pictures(result: Record) -> Sequence[Picture]:
    """One figure."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.6), layout="constrained")
    grid = figure.subplots(len(result["shown"]), 2 * len(HEADS), squeeze=False)
    for number, (row, task) in enumerate(zip(grid, result["shown"], strict=True), start=1):
        for ax, (head, source) in zip(row, _columns(), strict=True):
            attention_map(read(task[source][head]), ax)
            ax.set(xlabel="", ylabel="")
            if number == 1:
                ax.set_title(f"{TITLES[head]}\n[{source.title()}]", fontsize=8)
        row[0].set_ylabel(f"task {number}")
    return [Picture("lrn-attn-map", figure, CAPTION)]


def _columns() -> list[tuple[str, str]]:
    return [(head, source) for head in HEADS for source in ("thm", "lrn")]
