"""fig:parameter_sweep: A to D over levels, E to H over pairs of levels."""

from typing import TYPE_CHECKING, Any

from lloydformer.paper.artefact import Picture, Record
from lloydformer.paper.parameter_sweep.settings import AXES, GAMMAS
from lloydformer.paper.parameter_sweep.summary import PANELS
from lloydformer.plots.levels import over_levels, pair_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SINGLE = {"A": "Dimensions", "B": "Points", "C": "Clusters", "D": "Scale"}
_TITLES = {"Dimensions": "dimensions d", "Points": "points n", "Clusters": "clusters k",
           "Scale": "scale"}  # fmt: skip
_POINT_TICKS = ("100", "278", "774", "2k", "6k", "17k", "46k", "129k", "359k", "1M")
_WHAT = (
    "A to D: the log objective of the transformer minus Lloyd's after ten layers, mean and "
    "standard deviation over all other parameters. E to H: its mean over all else, for pairs of "
    "parameters."
)


def pictures(result: Record) -> list[Picture]:
    """Our figure, and the authors' with the same axes."""
    runs = result["counts"]["ours"]
    return [
        Picture("parameter-sweep", _figure(result, "ours"), f"{_WHAT} {runs:,} runs made here."),
        Picture("parameter-sweep-authors", _figure(result, "authors"),
                f"{_WHAT} The authors' {result['counts']['authors']:,} runs."),
    ]  # fmt: skip


def _figure(result: Record, whose: str) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 6.6), layout="constrained")
    upper, lower = figure.subplots(2, 4)
    for ax, (letter, name) in zip(upper, SINGLE.items(), strict=True):
        _lines(ax, letter, name, result["by_level"][whose][name])
        ax.set_ylim(*_limits(result))
    upper[0].set_ylabel("log objective,\ntransformer minus Lloyd's")
    upper[0].legend(frameon=False, title="γ")
    top = _largest_mean(result)
    for ax, (letter, (rows, columns)) in zip(lower, PANELS.items(), strict=True):
        matrix = result["by_pair"][whose][letter]
        image = pair_matrix(matrix, _ticks(rows), _ticks(columns), top, ax)
        ax.set(xlabel=_TITLES[columns], ylabel=_TITLES[rows])
        ax.tick_params(labelsize=8)
        ax.set_title(letter, loc="left", weight="bold")
    figure.colorbar(image, ax=list(lower), label="log objective,\ntransformer minus Lloyd's")
    return figure


def _lines(ax: Any, letter: str, name: str, found: Record) -> None:
    means, deviations = (
        {f"{gamma}": [level[g] for level in found[key]] for g, gamma in enumerate(GAMMAS)}
        for key in ("mean", "deviation")
    )
    over_levels(_ticks(name), means, deviations, ax)
    ax.set_xlabel(_TITLES[name])
    ax.tick_params(labelsize=8)
    ax.tick_params(axis="x", rotation=45 if name == "Points" else 0)
    ax.set_title(letter, loc="left", weight="bold")


def _ticks(name: str) -> list[str]:
    return list(_POINT_TICKS) if name == "Points" else [str(level) for level in AXES[name]]


def _largest_mean(result: Record) -> float:
    """The largest mean: the color scale of all matrices of both figures."""
    matrices = [matrix for found in result["by_pair"].values() for matrix in found.values()]
    return max(cell for matrix in matrices for row in matrix for cell in row if cell is not None)


def _limits(result: Record) -> tuple[float, float]:
    """The vertical axis of all lines of both figures."""
    ends = [
        (mean - deviation, mean + deviation)
        for levels in result["by_level"].values()
        for found in levels.values()
        for means, deviations in zip(found["mean"], found["deviation"], strict=True)
        for mean, deviation in zip(means, deviations, strict=True)
    ]
    return min(low for low, _ in ends) - 0.1, max(high for _, high in ends) + 0.1
