"""The attention of one head as an image."""

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
    """Draw attention weights, with a row for each query and a column for each key.

    White is weight 0, the darkest blue the largest weight.

    Parameters
    ----------
    attention : torch.Tensor of shape (q, m)
        The attention weights.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    query_labels : torch.Tensor of shape (q,) or None, default=None
        Labels by which the rows are sorted.
    key_labels : torch.Tensor of shape (m,) or None, default=None
        Labels by which the columns are sorted.
    names : tuple of str, default=("queries", "keys")
        Names of rows and columns.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    See Also
    --------
    lloydformer.Trace : Holds the attention of every head that was kept.

    Examples
    --------
    >>> import torch
    >>> from lloydformer import plots
    >>> ax = plots.attention_map(torch.eye(3), names=("points", "points"))
    >>> ax.get_xlabel()
    '3 points'
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
