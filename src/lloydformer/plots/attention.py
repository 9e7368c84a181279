"""What attends to what: one head's attention as a picture."""

from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.plots.axes import axes_or_new, colormap
from lloydformer.plots.palette import WEIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def attention_map(
    attention: Float[Tensor, "q m"],
    ax: "Axes | None" = None,
    query_labels: Int[Tensor, " q"] | None = None,
    key_labels: Int[Tensor, " m"] | None = None,
    names: tuple[str, str] = ("queries", "keys"),
) -> "Axes":
    """Attention weights, a row for each query and a column for each key.

    Given labels, queries or keys are put in their order, clusters next to each other. White is
    weight 0, the darkest blue the largest weight of this map.
    """
    ax = axes_or_new(ax)
    rows, columns = attention.shape
    matrix = attention.detach().cpu()[_order(query_labels, rows)][:, _order(key_labels, columns)]
    top = max(matrix.max().item(), torch.finfo(matrix.dtype).tiny)
    ax.imshow(matrix.numpy(), cmap=colormap(WEIGHT), vmin=0.0, vmax=top,
              aspect="auto", interpolation="nearest")  # fmt: skip
    ax.set_xlabel(_named(names[1], columns, key_labels))
    ax.set_ylabel(_named(names[0], rows, query_labels))
    ax.set(xticks=[], yticks=[])
    return ax


def _order(labels: Tensor | None, count: int) -> Tensor:
    return torch.arange(count) if labels is None else labels.cpu().argsort(stable=True)


def _named(name: str, count: int, labels: Tensor | None) -> str:
    return f"{count} {name}" + ("" if labels is None else ", by label")
