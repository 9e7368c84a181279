"""Recipes and traces for readers: equations as text and LaTeX, and figures for notebooks."""

from collections.abc import Iterator
from html import escape

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.circuits.heads import Head
from lloydformer.circuits.scores import Euclidean, Scaled, Score

# For each slot, the tokens of the queries and those of the keys.
SIDES = {
    "encoder_cross": ("X", "C"),
    "encoder_self": ("X", "X"),
    "affinity": ("X", "C"),
    "decoder_cross": ("C", "X"),
    "decoder_self": ("C", "C"),
}
# Signs of equations, and their LaTeX; √δ comes before δ, which it contains.
LATEX = {
    "∞": r"\infty",
    "√δ": r"\sqrt{\delta}",
    "δ": r"\delta",
    "π": r"\pi",
    "−": "-",
    "ŷ": r"\hat y",
    "η": r"\eta",
    "Λ": r"\Lambda",
    "κ": r"\kappa",
    "ρ": r"\rho",
    "←": r"\leftarrow ",
    "lin": r"\mathrm{lin}",
    "sparsemax": r"\mathrm{sparsemax}\ ",
    "top-": r"\mathrm{top}\text{-}",
    "·": r"\cdot",
    "NM": r"\mathrm{NM}",
    "GSM": r"\mathrm{GSM}",
    "[": "_{",
    "]": "}",
}

# Colours of clusters, those of all plots; after the eighth they repeat.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#A07D3A", "#6B6B6B")
# Points that a figure shows, so that notebooks stay small; of more, every second, third and so on.
MOST_POINTS = 1000
# Of a figure, in pixels.
_SIZE, _MARGIN = 260, 12
_CELL = 'style="text-align:left;padding:2px 10px 2px 0"'


def plain_term(slot: str, head: Head) -> str:
    """Return, for example, `A₂[∞](X, C; I[x], I[x], I[y])`: score, activation; Q, K, V."""
    return term(*SIDES[slot], head)


def term(queries: str, keys: str, head: Head) -> str:
    """Return the term of a head for any two sets of tokens."""
    kind = "₂" if _is_euclidean(head.score) else "⟨⟩"
    maps = ", ".join(str(p) for p in head.projections.values())
    return f"A{kind}[{_activation(head)}]({queries}, {keys}; {maps})"


def latex_term(slot: str, head: Head) -> str:
    r"""Return, for example, `\mathcal{A}_2^{\infty}(X, \tilde C; I_{x}, I_{x}, I_{y})`."""
    queries, keys = (side.replace("C", r"\tilde C") for side in SIDES[slot])
    kind = "2" if _is_euclidean(head.score) else r"{\langle,\rangle}"
    symbol = _latex(_activation(head))
    maps = ", ".join(_latex(str(p)) for p in head.projections.values())
    return rf"\mathcal{{A}}_{kind}^{{{symbol}}}({queries}, {keys}; {maps})"


def _activation(head: Head) -> str:
    return head.activation.symbol + (f" · {head.sharpness}" if head.sharpness else "")


def _is_euclidean(score: Score) -> bool:
    return isinstance(score.score if isinstance(score, Scaled) else score, Euclidean)


def _latex(text: str) -> str:
    for sign, latex in LATEX.items():
        text = text.replace(sign, latex)
    return text


def recipe_html(name: str, row: dict[str, str], equation: str) -> str:
    """Return a recipe's row of the paper's table, and its equation."""
    cells = {"recipe": name, **row}
    columns = "".join(f"<th {_CELL}>{escape(column)}</th>" for column in cells)
    values = "".join(f"<td {_CELL}>{escape(cell)}</td>" for cell in cells.values())
    return (
        f"<table><thead><tr>{columns}</tr></thead><tbody><tr>{values}</tr></tbody></table>"
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
    shapes = "".join(_draw_shapes(_first_two(points), _first_two(centers), labels.tolist()))
    values = ", ".join(f"{value:.4g}" for value in objective.tolist())
    note = "" if points.shape[-1] <= 2 else " (first two coordinates)"
    return (
        f'<figure style="margin:0"><svg role="img" aria-label="{escape(words)}" width="{_SIZE}" '
        f'height="{_SIZE}" viewBox="0 0 {_SIZE} {_SIZE}">{shapes}</svg>'
        f"<figcaption>{escape(words)}{note}<br>objective: {escape(values)}</figcaption></figure>"
    )


def _first_two(rows: Tensor) -> Float[Tensor, "*m 2"]:
    """Return the first two coordinates, the second one 0 if there is one only."""
    return torch.nn.functional.pad(rows.detach().double().cpu(), (0, 1))[..., :2].nan_to_num()


def _draw_shapes(
    points: Float[Tensor, "n 2"], centers: Float[Tensor, "s k 2"], labels: list[int]
) -> Iterator[str]:
    """Yield a dot for each point, each center's path through the layers, and a cross at its end."""
    shown = torch.cat([points, centers.flatten(0, 1)])
    low = shown.amin(dim=0)
    span = (shown.amax(dim=0) - low).amax().item() or 1.0  # one scale for both coordinates

    def place(rows: Tensor) -> list[tuple[float, float]]:
        scaled = (rows - low) / span * (_SIZE - 2 * _MARGIN) + _MARGIN
        return [(round(x, 1), round(_SIZE - y, 1)) for x, y in scaled.tolist()]

    step = -(-len(points) // MOST_POINTS)
    for (x, y), label in zip(place(points[::step]), labels[::step], strict=True):
        colour = COLOURS[label % len(COLOURS)]
        yield f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}" fill-opacity="0.6"/>'
    for j in range(centers.shape[1]):
        path, colour = place(centers[:, j]), COLOURS[j % len(COLOURS)]
        line, (x, y) = " ".join(f"{x},{y}" for x, y in path), path[-1]
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        cross = f"M{x - 5},{y - 5}l10,10m0,-10l-10,10"
        yield f'<path d="{cross}" stroke="#FFFFFF" stroke-width="5"/>'
        yield f'<path d="{cross}" stroke="{colour}" stroke-width="2.5"/>'
