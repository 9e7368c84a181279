"""The run of a circuit as a part of a page: paths of centers, attention maps, images.

The script circuit.js draws them at the layer that the stepper of the page names.
"""

from base64 import b64encode
from dataclasses import dataclass

import torch
from torch import Tensor

from lloydformer.circuits.stages import AnyRecipe
from lloydformer.circuits.trace import Trace
from lloydformer.plots.clusters import project_to_plane
from lloydformer.plots.palette import cluster_colour

MAPS = ("encoder_self", "encoder_cross", "decoder_cross", "decoder_self")

# Intermediates that a trace must keep: `circuit(points, centers, names_filter=KEEP)`.
KEEP = tuple(f"layers.*.{slot}.attention" for slot in MAPS)


@dataclass(frozen=True)
class Images:
    """A run on images.

    Attributes
    ----------
    trace : Trace
        The run; a center is an image whose pixels, row by row, are the features.
    shape : tuple of int
        Number of rows and columns of an image.
    """

    trace: Trace
    shape: tuple[int, int]


def circuit_values(
    recipe: AnyRecipe, trace: Trace, base: AnyRecipe, images: Images
) -> dict[str, object]:
    """Return the values that the macro of circuit.html shows.

    Parameters
    ----------
    recipe : Recipe or Staged
        The recipe.
    trace : Trace
        Its run, with the attention of all heads in `KEEP`.
    base : Recipe or Staged
        The recipe with which the row of the table tab:comp-alg is compared.
    images : Images
        Its run on images, whose centers are shown below.

    Returns
    -------
    dict
        recipe: the recipe. row: for each column of its row, the cell and whether it differs from
        that of `base`. n_points, n_layers, n_centers, n_images: the sizes of both runs. data: what
        circuit.js reads, with an entry for each layer in centers, objective, attention and images;
        points and their last labels are sorted by label.
    """
    cells = {k: v for k, v in recipe.row().items() if k not in ("Algorithm", "Appendix")}
    frames = [_pack_bytes(centers)[1] for centers in images.trace.centers]
    # Points are sorted by their last label: then the clusters are blocks of an attention map.
    order = trace.labels[-1].argsort(stable=True)
    points = project_to_plane(trace.points)
    centers = project_to_plane(trace.centers, points=trace.points)
    data = {
        # Three decimals are finer than a pixel of the drawing.
        "points": torch.round(points[order], decimals=3).tolist(),
        "centers": torch.round(centers, decimals=3).tolist(),
        "colours": [cluster_colour(j) for j in range(centers.shape[1])],
        # The page prints these numbers as they are: five digits can still be read at a glance.
        "objective": [float(f"{value:.5g}") for value in trace.objective.tolist()],
        "labels": trace.labels[-1][order].tolist(),
        "attention": {slot: _attention_data(trace, slot, order) for slot in MAPS},
        "images": {"shape": list(images.shape), "frames": frames},
    }
    return {
        "recipe": recipe,
        "row": {name: (cell, cell != base.row()[name]) for name, cell in cells.items()},
        "n_points": trace.points.shape[-2],
        "n_layers": trace.n_layers,
        "n_centers": trace.centers.shape[-2],
        "n_images": images.trace.centers.shape[-2],
        "data": data,
    }


def _attention_data(trace: Trace, slot: str, order: Tensor) -> dict[str, object]:
    """Return the distinct maps of a head as bytes, and the index of the map of each layer.

    A run that has converged repeats its maps: they are stored once.
    """
    # Rows are queries, those of the slot's own side. Columns are keys: of the same side in
    # self-attention, of the other side in cross-attention. Only points are sorted, not centers.
    points_are_rows = slot in ("encoder_self", "encoder_cross")
    points_are_columns = slot in ("encoder_self", "decoder_cross")
    matrices = [trace[f"layers.{i}.{slot}.attention"].detach().cpu() for i in range(trace.n_layers)]
    matrices = [matrix[order] for matrix in matrices] if points_are_rows else matrices
    matrices = [matrix[:, order] for matrix in matrices] if points_are_columns else matrices
    maps = [_pack_bytes(matrix) for matrix in matrices]
    distinct = list(dict.fromkeys(maps))
    return {
        "shape": list(matrices[0].shape),
        "maps": [{"top": top, "bytes": text} for top, text in distinct],
        "layers": [distinct.index(item) for item in maps],
    }


def _pack_bytes(values: Tensor) -> tuple[float, str]:
    """Return the largest value, and all values as bytes from 0 to 255 relative to it.

    The bytes are in base64: a screen shows no more than 256 levels, and numbers in JSON would make
    the page several times as large.
    """
    top = values.max().item()
    shares = (values / (top or 1.0)).clamp(0, 1)
    levels = (shares * 255).round().to(torch.uint8).numpy()
    # The page multiplies by the largest value and shows two digits of the product: four suffice.
    return float(f"{top:.4g}"), b64encode(levels.tobytes()).decode()
