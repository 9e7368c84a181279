"""Matrices as images: attention, weights with the names of their subspaces, means of pairs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.subspaces import Space
from lloydformer.plots.axes import axes_or_new, colormap
from lloydformer.plots.palette import INK, SIGNED, WEIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

Matrix = Literal["query", "key", "value"]
MATRICES: tuple[Matrix, ...] = ("query", "key", "value")


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
    matrix = attention.detach().cpu()
    # Stable sorts keep the order of tokens within a cluster, so that a map of sorted tokens can be
    # compared with one of unsorted tokens.
    if query_labels is not None:
        matrix = matrix[query_labels.cpu().argsort(stable=True)]
    if key_labels is not None:
        matrix = matrix[:, key_labels.cpu().argsort(stable=True)]
    top = max(matrix.max().item(), torch.finfo(matrix.dtype).tiny)  # a map of zeros is white
    _draw_weights(ax, matrix.numpy(), top)
    sides = zip(names, matrix.shape, (query_labels, key_labels), strict=True)
    rows, columns = (
        f"{count} {name}" + ("" if labels is None else ", by label")
        for name, count, labels in sides
    )
    ax.set(xlabel=columns, ylabel=rows, xticks=[], yticks=[])
    return ax


def _draw_weights(ax: "Axes", matrix: np.ndarray, top: float, **how: Any) -> "AxesImage":
    """Draw a matrix from white at 0 to the darkest blue at `top`."""
    how |= {"cmap": colormap(WEIGHT), "vmin": 0.0, "vmax": top}
    return ax.imshow(matrix, aspect="auto", interpolation="nearest", **how)


def weights(
    source: Circuit | Float[Tensor, "dim dim"],
    ax: "Axes | None" = None,
    head: str = "encoder_cross",
    matrix: Matrix = "query",
    space: Space | None = None,
    separation: float = 1.0,
) -> "Axes":
    """Draw a matrix of a circuit's first layer: it reads columns and writes rows.

    Blue is positive, brown negative, white 0.

    Parameters
    ----------
    source : Circuit or torch.Tensor of shape (dim, dim)
        A circuit, or a matrix.
    ax : matplotlib.axes.Axes or None, default=None
        Axes to draw on; None creates a figure.
    head : str, default="encoder_cross"
        The head of the circuit.
    matrix : {"query", "key", "value"}, default="query"
        The matrix of the head.
    space : Space or None, default=None
        The subspaces of a matrix that is given as a tensor, for the names at the axes.
    separation : float, default=1.0
        The paper's delta, for matrices that depend on it.

    Returns
    -------
    matplotlib.axes.Axes
        The axes that were drawn on.

    Raises
    ------
    ValueError
        If the circuit has no head of this name.

    See Also
    --------
    attention_map : The attention of a head.

    Examples
    --------
    >>> import lloydformer as lf
    >>> from lloydformer import plots
    >>> circuit = lf.Circuit(lf.recipes.lloyd(), n_features=2, n_clusters=3)
    >>> ax = plots.weights(circuit, head="decoder_self", matrix="value")
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['position', 'assignment']
    """
    ax = axes_or_new(ax)
    if isinstance(source, Circuit):
        space, slots = source.space, source.schedule[0].heads
        if head not in slots:
            raise ValueError(f"head: found {head!r}; this circuit has {', '.join(slots)}")
        like = torch.empty(0, dtype=torch.float64)
        source = getattr(source.layers[0], head).weight(matrix, like, separation)
    assert isinstance(source, Tensor)
    values = source.detach().cpu()
    # Limits are symmetric, so that white is 0; a matrix of zeros is white.
    top = max(values.abs().max().item(), torch.finfo(values.dtype).tiny)
    ax.imshow(values.numpy(), cmap=colormap(SIGNED), vmin=-top, vmax=top, interpolation="nearest")
    ax.set(xticks=[], yticks=[], xlabel="reads", ylabel="writes")
    if space is None:
        return ax
    # The name at the middle of each subspace, and a thin line between subspaces.
    spans = [space.span(subspace) for subspace in space.subspaces]
    middles = [(span.start + span.stop - 1) / 2 for span in spans]
    names = [subspace.name.replace("_", " ") for subspace in space.subspaces]
    ax.set_xticks(middles, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(middles, names)
    ax.tick_params(length=0)
    for span in spans[:-1]:
        ax.axhline(span.stop - 0.5, color=INK, linewidth=0.5)
        ax.axvline(span.stop - 0.5, color=INK, linewidth=0.5)
    return ax


def pair_matrix(
    values: Sequence[Sequence[float | None]],
    rows: Sequence[str],
    columns: Sequence[str],
    top: float,
    ax: "Axes | None" = None,
) -> "AxesImage":
    """Draw a matrix of means from white at 0 to dark at `top`; None is left blank.

    Returns the image, from which a colour bar can be made.
    """
    ax = axes_or_new(ax)
    # None becomes NaN, which matplotlib leaves blank.
    image = _draw_weights(ax, np.asarray(values, float), top, origin="lower")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    return image
