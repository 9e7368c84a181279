"""fig:trf-train: one figure for starts and embeddings, one for the numbers of points."""

from collections.abc import Sequence

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.lloyd_comparison_figure import panels

TITLES = {
    "random init": "(a) $d_{emb} = d + k$, random init",
    "random init, d_emb=d": "(b) $d_{emb} = d$, random init",
    "k-means++ init": "(c) $d_{emb} = d + k$, k-means++ init",
    "greedy k-means++ init": "(c') greedy k-means++ init",
}


def pictures(result: Record) -> Sequence[Picture]:
    """Panels (a) to (c), and (c') beyond the paper; then panel (d)."""
    return [_starts(result), _sizes(result)]


def _starts(result: Record) -> Picture:
    curves = {TITLES[name]: one for name, one in result["curves"].items()}
    n_tasks = result["rows"]["random init"]["n_tasks"]
    caption = (
        f"Mean log objective over {n_tasks} tasks with 512 points, ribbons from the least to the "
        "greatest: (a) random points as centers, (b) without the k scratch dimensions, (c) plain "
        "k-means++, and beyond the paper (c') greedy k-means++."
    )
    return Picture("trf-train", panels(curves, shared=True), caption)


def _sizes(result: Record) -> Picture:
    curves = {f"n = {n}": one for n, one in result["sizes"].items()}
    counts = ", ".join(str(one["n_tasks"]) for one in curves.values())
    caption = (
        "(d) The layer that was trained with 512 points on tasks of other sizes: mean log "
        f"objective, ribbons from the least to the greatest over {counts} tasks."
    )
    return Picture("trf-train-sizes", panels(curves), caption)
