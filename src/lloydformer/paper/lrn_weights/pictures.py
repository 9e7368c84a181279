"""fig:lrn-weights: one row for each head, constructed and learned matrices side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.attention_heads import HEADS, MATRICES
from lloydformer.paper.matrix_text import read
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.palette import INK, SIGNED_WORDS
from lloydformer.plots.weights import weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CAPTION = (
    "Constructed [Thm] and learned [Lrn] weights of the four attentions, d = 32, k = 10, each "
    f"42 x 42 and with its own scale: {SIGNED_WORDS}. The thin lines separate the 32 dimensions of "
    "the position from the 10 of the assignment."
)


def pictures(result: Record) -> Sequence[Picture]:
    """One figure."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.2), layout="constrained")
    grid = figure.subplots(len(HEADS), 2 * len(MATRICES))
    for number, (row, head) in enumerate(zip(grid, HEADS, strict=True), start=1):
        for place, (name, source) in enumerate(_columns()):
            _panel(row[place], matrix(result, head, name, source), result["n_features"])
            row[place].set_title(f"${_symbol(name, number)}$ [{source.title()}]", fontsize=9)
        row[0].set_ylabel(head.replace("_", "\n"), fontsize=9)
    return [Picture("lrn-weights", figure, CAPTION)]


def _columns() -> list[tuple[str, str]]:
    return [(name, source) for name in MATRICES for source in ("thm", "lrn")]


def _symbol(name: str, number: int) -> str:
    return rf"Q_{number}^\top K_{number}" if name == "QtK" else f"{name}_{number}"


def matrix(result: Record, head: str, name: str, source: str) -> Float[Tensor, "e e"]:
    """One matrix of the result; a product Q^T K that is not saved is computed."""
    saved = result[source][head]
    return read(saved[name]) if name in saved else read(saved["Q"]).T @ read(saved["K"])


def _panel(ax: "Axes", values: Tensor, n_features: int) -> None:
    weights(values, ax)
    ax.set(xlabel="", ylabel="")
    ax.axhline(n_features - 0.5, color=INK, linewidth=0.4)
    ax.axvline(n_features - 0.5, color=INK, linewidth=0.4)
