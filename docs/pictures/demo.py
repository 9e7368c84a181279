"""Draws docs/pictures/demo.png: `python docs/pictures/demo.py` (needs the extra `plots`)."""

from collections import defaultdict
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from lloydformer import Recipe, Trace, plots
from lloydformer.app.jobs.demo import make_cases, make_plane, run_circuits
from lloydformer.circuits import recipes
from lloydformer.plots.report.circuit import MAPS

LAYER = 3
TITLES = dict(zip(MAPS, ("encoder self", "cross", "decoder cross", "self"), strict=True))


def draw(path: Path) -> None:
    """The seven recipes on the demo's points, and the attention of one layer of the first."""
    runs = run_circuits(make_cases(make_plane(seed=0), seed=0), n_layers=10)
    figure = Figure(figsize=(12, 6.6), layout="constrained")
    panels = figure.subfigures(2, 4, wspace=0.02, hspace=0.03).ravel()
    for panel, run in zip(panels, runs, strict=False):
        trajectory(panel.subplots(), run.case.recipe, run.trace)
    attention(panels[-1], runs[0].trace)
    figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})


def trajectory(ax: Axes, recipe: Recipe, trace: Trace) -> None:
    plots.trajectories(trace, ax)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.spines[:].set_color("#BBBBBB")
    ax.set_title(f"{recipe.name}\n", fontsize=12, fontweight="bold", loc="left")
    words = ax.text(0, 1.02, changed(recipe), transform=ax.transAxes, fontsize=9, color="#555555")
    words.set_in_layout(False)


def changed(recipe: Recipe) -> str:
    """What the recipe replaces in Lloyd's row of the table: places by what stands there now."""
    base, places = recipes.lloyd().row(), defaultdict(list)
    for place, cell in list(recipe.row().items())[:6]:
        if cell != base[place]:
            places[cell].append(place)
    words = [" + ".join(where) + f" {cell}".removesuffix(" ✓") for cell, where in places.items()]
    return ", ".join(words) or "one layer = one iteration"


def attention(panel: SubFigure, trace: Trace) -> None:
    """The four maps as one block matrix: points and centers ask, points and centers answer."""
    axes = panel.subplots(2, 2, width_ratios=[3, 1], height_ratios=[3, 1])
    labels = trace.labels[-1]
    for ax, slot in zip(axes.ravel(), MAPS, strict=True):
        asks = labels if slot.startswith("encoder") else None
        answers = labels if slot in ("encoder_self", "decoder_cross") else None
        plots.attention_map(trace[f"layers.{LAYER}.{slot}.attention"], ax, asks, answers)
        ax.set(xlabel="", ylabel="")
        ax.set_title(TITLES[slot], fontsize=8, pad=3, loc="left")
    axes[0, 0].set_ylabel("points ask", fontsize=9)
    axes[1, 0].set_ylabel("centers ask", fontsize=9)
    axes[1, 0].set_xlabel("points answer", fontsize=9)
    axes[1, 1].set_xlabel("centers", fontsize=9)
    panel.suptitle(f"lloyd: attention in layer {LAYER}", fontsize=11, fontweight="bold")


if __name__ == "__main__":
    draw(Path(__file__).with_suffix(".png"))
