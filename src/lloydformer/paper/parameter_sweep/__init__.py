"""fig:parameter_sweep: how close soft k-means is to Lloyd's as the size of the problem changes.

`experiment.py` runs the data sets and summarises them, `verdicts.py` judges the sentences; tables
and pictures are here. Both compare our runs with the authors' published ones.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lloydformer.paper.artefact import Picture, Record, TextTable
from lloydformer.paper.paper_numbers import beside
from lloydformer.paper.parameter_sweep.experiment import AXES, GAMMAS, PANELS, combine, pieces
from lloydformer.paper.parameter_sweep.verdicts import verdicts
from lloydformer.plots.curves import level_curves
from lloydformer.plots.heatmaps import pair_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["combine", "pictures", "pieces", "tables", "verdicts"]

# Panels over the levels of one parameter; E to H are over pairs.
SINGLE = {"A": "Dimensions", "B": "Points", "C": "Clusters", "D": "Scale"}
TITLES = {
    "Dimensions": "dimensions d",
    "Points": "points n",
    "Clusters": "clusters k",
    "Scale": "scale",
}
TICKS = {name: [str(level) for level in axis] for name, axis in AXES.items()}
# numbers of points in full would overlap
TICKS["Points"] = ["100", "278", "774", "2k", "6k", "17k", "46k", "129k", "359k", "1M"]
AXIS_LABEL = "log objective,\ntransformer minus Lloyd's"
CAPTION = (
    "A to D: the log objective of the transformer minus Lloyd's after ten layers, mean and "
    "standard deviation over all other parameters. E to H: its mean over all else, for pairs of "
    "parameters."
)


def tables(result: Record) -> Sequence[TextTable]:
    """Return one table: a row for each level of each parameter, the authors' means in brackets."""
    columns = ["", *(f"γ = {gamma} (authors)" for gamma in GAMMAS)]
    rows = [
        [name, *(beside(row[g], row[g + len(GAMMAS)], 3) for g in range(len(GAMMAS)))]
        for name, row in result["rows"].items()
    ]
    caption = "Log objective of the transformer minus Lloyd's: mean over all else"
    return [TextTable(caption, columns, rows)]


def pictures(result: Record) -> list[Picture]:
    """Return our figure, and the authors' with the same axes."""
    ours = f"{CAPTION} {result['counts']['ours']:,} runs made here."
    authors = f"{CAPTION} The authors' {result['counts']['authors']:,} runs."
    return [
        Picture("parameter-sweep", _figure(result, "ours"), ours),
        Picture("parameter-sweep-authors", _figure(result, "authors"), authors),
    ]


def _figure(result: Record, whose: str) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.6), layout="constrained")
    upper, lower = figure.subplots(2, 4)
    # both figures have the same scales, so that they can be compared by eye
    lines = [found for levels in result["by_level"].values() for found in levels.values()]
    low = min(np.subtract(found["mean"], found["deviation"]).min() for found in lines)
    high = max(np.add(found["mean"], found["deviation"]).max() for found in lines)
    matrices = [matrix for found in result["by_pair"].values() for matrix in found.values()]
    # a quick run does not have every pair of levels
    top = max(cell for matrix in matrices for row in matrix for cell in row if cell is not None)
    for ax, name in zip(upper, SINGLE.values(), strict=True):
        found = result["by_level"][whose][name]
        means, deviations = (
            {f"{gamma}": [level[g] for level in found[key]] for g, gamma in enumerate(GAMMAS)}
            for key in ("mean", "deviation")
        )
        level_curves(TICKS[name], means, deviations, ax)
        ax.set_xlabel(TITLES[name])
        # the short names of ten numbers of points still need to be turned
        ax.tick_params(axis="x", rotation=45 if name == "Points" else 0)
        ax.set_ylim(low - 0.1, high + 0.1)
    upper[0].set_ylabel(AXIS_LABEL)
    upper[0].legend(frameon=False, title="γ")
    for ax, (letter, (rows, columns)) in zip(lower, PANELS.items(), strict=True):
        matrix = result["by_pair"][whose][letter]
        image = pair_matrix(matrix, TICKS[rows], TICKS[columns], top, ax)
        ax.set(xlabel=TITLES[columns], ylabel=TITLES[rows])
    for ax, letter in zip((*upper, *lower), (*SINGLE, *PANELS), strict=True):
        ax.tick_params(labelsize=8)
        ax.set_title(letter, loc="left", weight="bold")
    figure.colorbar(image, ax=list(lower), label=AXIS_LABEL)
    return figure
