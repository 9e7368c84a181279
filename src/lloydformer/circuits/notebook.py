"""Recipes and traces as small HTML figures, for notebooks (`_repr_html_`)."""

from collections.abc import Iterator
from html import escape

import torch
from jaxtyping import Float, Int
from torch import Tensor

COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#A07D3A", "#6B6B6B",
)  # fmt: skip
"""Colours of clusters, those of all plots; after the eighth they repeat."""

MOST_POINTS = 1000
"""Points that a figure shows; of more, every other, every third and so on."""

_SIZE, _MARGIN = 260, 12
_CELL = 'style="text-align:left;padding:2px 10px 2px 0"'


def recipe_html(name: str, row: dict[str, str], equation: str) -> str:
    """Return a recipe's row of the paper's table, and its equation."""
    cells = {"recipe": name, **row}
    heads = "".join(f"<th {_CELL}>{escape(column)}</th>" for column in cells)
    found = "".join(f"<td {_CELL}>{escape(cell)}</td>" for cell in cells.values())
    return (
        f"<table><thead><tr>{heads}</tr></thead><tbody><tr>{found}</tr></tbody></table>"
        f"<pre>{escape(equation)}</pre>"
    )


def trace_html(
    points: Float[Tensor, "n d"],
    centers: Float[Tensor, "s k d"],
    labels: Int[Tensor, " n"],
    objective: Float[Tensor, " s"],
    words: str,
) -> str:
    """Return points by cluster, the paths of the centers, and the objective after each layer.

    Points and centers are shown in their first two coordinates; labels are those of the last layer.
    """
    found = "".join([*_dots(points, centers, labels), *_paths(points, centers)])
    values = ", ".join(f"{value:.4g}" for value in objective.tolist())
    note = "" if points.shape[-1] <= 2 else " (first two coordinates)"
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="{escape(words)}" width="{_SIZE}" '
        f'height="{_SIZE}" viewBox="0 0 {_SIZE} {_SIZE}">{found}</svg>'
        f"<figcaption>{escape(words)}{note}<br>objective: {escape(values)}</figcaption></figure>"
    )


def _dots(points: Tensor, centers: Tensor, labels: Tensor) -> Iterator[str]:
    step = -(-len(points) // MOST_POINTS)
    places = _places(points[::step], points, centers)
    for (x, y), label in zip(places, labels[::step].tolist(), strict=True):
        yield f'<circle cx="{x}" cy="{y}" r="2.5" fill="{_colour(label)}" fill-opacity="0.6"/>'


def _paths(points: Tensor, centers: Tensor) -> Iterator[str]:
    """Each center's path through the layers, and a cross at its end."""
    for j in range(centers.shape[1]):
        places = _places(centers[:, j], points, centers)
        line = " ".join(f"{x},{y}" for x, y in places)
        (x, y), colour = places[-1], _colour(j)
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        yield (
            f'<path d="M{x - 5},{y - 5}l10,10m0,-10l-10,10" stroke="#FFFFFF" stroke-width="5"/>'
            f'<path d="M{x - 5},{y - 5}l10,10m0,-10l-10,10" stroke="{colour}" stroke-width="2.5"/>'
        )


def _places(rows: Tensor, *everything: Tensor) -> list[tuple[float, float]]:
    """Return the first two coordinates in the units of the figure; one scale for both."""
    shown = [_plane(each.detach().double().cpu().reshape(-1, each.shape[-1])) for each in
             (rows, *everything)]  # fmt: skip
    reach = torch.cat(shown[1:]).nan_to_num()
    low, span = reach.amin(dim=0), (reach.amax(dim=0) - reach.amin(dim=0)).amax().item() or 1.0
    scaled = (shown[0].nan_to_num() - low) / span * (_SIZE - 2 * _MARGIN) + _MARGIN
    return [(round(x, 1), round(_SIZE - y, 1)) for x, y in scaled.tolist()]


def _plane(rows: Tensor) -> Tensor:
    return torch.nn.functional.pad(rows, (0, 1))[:, :2]


def _colour(cluster: int) -> str:
    return COLOURS[cluster % len(COLOURS)]
