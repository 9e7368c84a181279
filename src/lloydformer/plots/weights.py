"""The matrices of a circuit, with the names of the subspaces that they read and write."""

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
    """A matrix of a circuit's first layer: what it reads (columns) and writes (rows).

    source: a circuit, of which the `matrix` of the `head` is shown at this `separation`; or a
    matrix with the `space` that it acts on. Blue is positive, red negative, white 0.
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
    """Names at the middle of each span, and a thin line between spans."""
    spans = [space.span(subspace) for subspace in space.subspaces]
    middles = [(span.start + span.stop - 1) / 2 for span in spans]
    names = [subspace.name.replace("_", " ") for subspace in space.subspaces]
    ax.set_xticks(middles, names, rotation=30, ha="right", rotation_mode="anchor")
    ax.set_yticks(middles, names)
    ax.tick_params(length=0)
    for span in spans[:-1]:
        ax.axhline(span.stop - 0.5, color=INK, linewidth=0.5)
        ax.axvline(span.stop - 0.5, color=INK, linewidth=0.5)
