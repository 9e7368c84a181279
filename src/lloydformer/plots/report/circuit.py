"""The run of a circuit as a part of a page: paths of centers, attention maps, images."""

from base64 import b64encode
from dataclasses import dataclass
from html import escape

import torch
from torch import Tensor

from lloydformer.circuits.recipe import Recipe
from lloydformer.circuits.trace import Trace
from lloydformer.plots.palette import cluster_colour
from lloydformer.plots.trajectories import project_to_plane
from lloydformer.report.page import Part, resource
from lloydformer.report.parts import inline, widget

MAPS = ("encoder_self", "encoder_cross", "decoder_cross", "decoder_self")
KEEP = tuple(f"layers.*.{slot}.attention" for slot in MAPS)
"""Intermediates that a trace must keep: `circuit(points, centers, keep=KEEP)`."""


@dataclass(frozen=True)
class Images:
    """A run on images: its trace, the shape of an image, and a caption."""

    trace: Trace
    shape: tuple[int, int]
    caption: str


def circuit(
    recipe: Recipe, trace: Trace, about: str, verdict: str, base: Recipe, images: Images
) -> Part:
    """Return a part with a recipe's row, its equation and its run, layer by layer.

    A stepper on the page chooses the layer. Cells of the row that differ from those of `base` are
    marked.
    """
    html = resource("circuit.html").format(
        title=escape(recipe.algorithm.lstrip("*")),
        call=escape(f"lf.recipes.{recipe.name}()"),
        about=inline(about),
        verdict=inline(verdict),
        row=_row(recipe, base),
        equation=escape(recipe.equation()),
        n_points=trace.points.shape[-2],
        n_centers=trace.centers.shape[-2],
        caption=inline(images.caption),
        images="".join("<canvas></canvas>" for _ in range(images.trace.centers.shape[-2])),
    )
    return widget("circuit", html, {**_run(trace), "images": _images(images)})


def _row(recipe: Recipe, base: Recipe) -> str:
    """Return the cells of the table tab:comp-alg; those that differ from `base` are marked."""
    cells = {k: v for k, v in recipe.row().items() if k not in ("Algorithm", "Appendix")}
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in cells)
    body = "".join(
        f"<td>{escape(cell)}</td>" if cell == base.row()[name] else
        f"<td><mark>{escape(cell)}</mark></td>"
        for name, cell in cells.items()
    )  # fmt: skip
    return f"<thead><tr>{head}</tr></thead><tbody><tr>{body}</tr></tbody>"


def _run(trace: Trace) -> dict[str, object]:
    """Return the data of the run; points are sorted by their last label."""
    order = trace.labels[-1].argsort(stable=True)
    points = project_to_plane(trace.points)
    centers = project_to_plane(trace.centers, points=trace.points)
    return {
        "points": _rounded(points[order]),
        "centers": _rounded(centers),
        "colours": [cluster_colour(j) for j in range(centers.shape[1])],
        "objective": [float(f"{value:.5g}") for value in trace.objective.tolist()],
        "labels": trace.labels[-1][order].tolist(),
        "attention": {slot: _maps(trace, slot, order) for slot in MAPS},
    }


def _maps(trace: Trace, slot: str, order: Tensor) -> dict[str, object]:
    """Return the distinct maps of a head as bytes, and the index of the map of each layer."""
    rows, columns = slot.startswith("encoder"), slot in ("encoder_self", "decoder_cross")
    packed = []
    for layer in range(trace.n_layers):
        matrix = trace[f"layers.{layer}.{slot}.attention"].detach().cpu()
        matrix = matrix[order] if rows else matrix
        packed.append(_packed(matrix[:, order] if columns else matrix))
    distinct = list(dict.fromkeys(packed))
    return {
        "shape": list(matrix.shape),
        "maps": [{"top": top, "bytes": text} for top, text in distinct],
        "layers": [distinct.index(item) for item in packed],
    }


def _images(images: Images) -> dict[str, object]:
    return {"shape": list(images.shape), "frames": [_packed(c)[1] for c in images.trace.centers]}


def _packed(values: Tensor) -> tuple[float, str]:
    """Return the largest value, and all values as bytes from 0 to 255 relative to it."""
    top = values.max().item()
    shares = (values / (top or 1.0)).clamp(0, 1)
    levels = (shares * 255).round().to(torch.uint8).numpy()
    return float(f"{top:.4g}"), b64encode(levels.tobytes()).decode()


def _rounded(values: Tensor) -> list[object]:
    return torch.round(values, decimals=3).tolist()
