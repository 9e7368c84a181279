"""The matrices of a circuit, with the names of their subspaces."""

from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.subspaces import Space
from lloydformer.plots.axes import axes_or_new, colormap
from lloydformer.plots.palette import INK, SIGNED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Matrix = Literal["query", "key", "value"]
MATRICES: tuple[Matrix, ...] = ("query", "key", "value")


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
        space, source = source.space, _weight(source, head, matrix, separation)
    values = source.detach().cpu()
    top = max(values.abs().max().item(), torch.finfo(values.dtype).tiny)
    ax.imshow(values.numpy(), cmap=colormap(SIGNED), vmin=-top, vmax=top, interpolation="nearest")
    ax.set(xticks=[], yticks=[], xlabel="reads", ylabel="writes")
    if space is not None:
        _name_subspaces(ax, space)
    return ax


def _weight(circuit: Circuit, head: str, matrix: str, separation: float) -> Tensor:
    slots = circuit.schedule[0].heads
    if head not in slots:
        raise ValueError(f"head: found {head!r}; this circuit has {', '.join(slots)}")
    like = torch.empty(0, dtype=torch.float64)
    return getattr(circuit.layers[0], head).weight(matrix, like, separation)


def _name_subspaces(ax: "Axes", space: Space) -> None:
    """Write the name at the middle of each subspace, and draw a thin line between them."""
    spans = [space.span(subspace) for subspace in space.subspaces]
    middles = [(span.start + span.stop - 1) / 2 for span in spans]
    names = [subspace.name.replace("_", " ") for subspace in space.subspaces]
    ax.set_xticks(middles, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(middles, names)
    ax.tick_params(length=0)
    for span in spans[:-1]:
        ax.axhline(span.stop - 0.5, color=INK, linewidth=0.5)
        ax.axvline(span.stop - 0.5, color=INK, linewidth=0.5)
