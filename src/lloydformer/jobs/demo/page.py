"""The HTML page of the demo."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lloydformer import __version__, plots, report
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.outside import EXPLAINED
from lloydformer.circuits.trace import Trace
from lloydformer.jobs.demo.data import DIGITS, PLANE
from lloydformer.jobs.demo.run import CircuitRun, one_digit
from lloydformer.jobs.demo.text import (
    ABOUT,
    CHECKED,
    LEAD,
    MAPS,
    OBJECTIVE,
    OUTSIDE,
    POINTS,
    SNIPPET,
    WEIGHTS,
)
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.weights import MATRICES
from lloydformer.report.circuit import Images, circuit
from lloydformer.report.stepper import stepper
from lloydformer.storage.atomic import write_whole
from lloydformer.verify.compare import Deviation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def demo_page(runs: Sequence[CircuitRun], seed: int) -> str:
    """The lead, the circuits with their stepper, the checks, the objective, the weights."""
    by_data = {
        family: [run for run in runs if run.case.problem.family == family]
        for family in (PLANE, DIGITS)
    }
    pairs = list(zip(by_data[PLANE], by_data[DIGITS], strict=True))
    n_layers = runs[0].trace.n_layers
    parts = [
        report.heading("A transformer that clusters, every weight set by hand", level=1),
        report.text(*LEAD, lead=True),
        report.heading("Seven circuits"),
        report.text(POINTS),
        report.details("How to read maps, row and equation", report.text(*MAPS)),
        report.section(*[_card(*pair) for pair in pairs], stepper(n_layers)),
        *_check(runs),
        *_outside(by_data[PLANE]),
        *_objectives(by_data),
        *_weights(by_data[PLANE][0]),
        report.heading("Look for yourself"),
        report.code(SNIPPET),
        report.text(f"Written by `lloydformer demo --seed {seed}`, version {__version__}."),
    ]
    return report.page("lloydformer: a transformer that clusters", parts)


def write_page(path: Path, runs: Sequence[CircuitRun], seed: int) -> str | None:
    """Write the page; without matplotlib, return the reason why there is none."""
    try:
        require_matplotlib()
    except ImportError as error:
        return str(error)
    write_whole(path, demo_page(runs, seed))
    return None


def _card(flat: CircuitRun, images: CircuitRun) -> report.Part:
    recipe = flat.case.recipe
    worst = flat.deviation + images.deviation
    return circuit(
        recipe,
        flat.trace,
        about=ABOUT[recipe.name],
        verdict=_verdict(worst, flat.equal and images.equal, flat.trace.n_layers),
        base=recipes.lloyd(),
        images=Images(images.trace, (8, 8), _image_caption(images.trace)),
    )


def _verdict(worst: Deviation, equal: bool, n_layers: int) -> str:
    if equal:
        return (
            f"Equal to the plain algorithm on both data sets, in each of {n_layers} layers: "
            f"no label differs, centers differ by at most {one_digit(worst.centers)} of the spread."
        )
    centers = one_digit(worst.centers)
    return f"Differs from the plain algorithm: {worst.labels} labels, centers by {centers}."


def _image_caption(trace: Trace) -> str:
    n, k = trace.points.shape[-2], trace.centers.shape[-2]
    return f"The same recipe on {n} handwritten digits: its {k} centers at this layer, as images."


def _check(runs: Sequence[CircuitRun]) -> list[report.Part]:
    columns = ("recipe", "data", "objective", f"after {runs[0].trace.n_layers} layers",
               "labels that differ", "centers differ by", "verdict")  # fmt: skip
    return [
        report.heading("Checked against the plain algorithms"),
        report.text(CHECKED),
        report.table(columns, [[f"`{run.case.recipe.name}`", *run.measured] for run in runs]),
    ]


def _outside(runs: Sequence[CircuitRun]) -> list[report.Part]:
    """What each number from outside of the transformer is, and its values in the first layers."""
    used = {run.case.recipe.name: dict(run.trace.outside[0].items()) for run in runs}
    rows = []
    for name, (what, without) in EXPLAINED.items():
        found = [f"`{recipe}` {own[name]}" for recipe, own in used.items() if name in own]
        rows.append([f"`{name}`", what, without, "; ".join(_shortened(found)) or "not used"])
    columns = ("number", "what it is", "as printed, without it", "in the first layer here")
    return [
        report.heading("What stands outside of the transformer"),
        report.text(OUTSIDE),
        report.table(columns, rows),
    ]


def _shortened(values: list[str]) -> list[str]:
    """One value for all recipes, if they have the same one."""
    same = {words.split(" ", 1)[1] for words in values}
    return [f"all: {same.pop()}"] if len(same) == 1 and len(values) > 2 else values


def _objectives(by_data: dict[str, list[CircuitRun]]) -> list[report.Part]:
    figures = []
    for family, runs in by_data.items():
        drawing, (ax,) = _figure(5.2, 3.6, 1)
        plots.objective_curve({r.case.recipe.name: r.trace for r in runs}, ax, relative=True)
        caption = f"The k-means objective on the {family}, divided by its value at the start."
        figures.append(report.figure(drawing, caption))
    return [report.heading("The objective"), report.text(OBJECTIVE),
            report.section(*figures, kind="columns")]  # fmt: skip


def _weights(run: CircuitRun) -> list[report.Part]:
    _, n_clusters, n_features = run.trace.centers.shape
    lloyd = Circuit(run.case.recipe, n_features, n_clusters)
    figures = []
    for slot, head in run.case.recipe.heads.items():
        drawing, axes = _figure(5.2, 2.3, 3)
        for ax, name in zip(axes, MATRICES, strict=True):
            plots.weights(lloyd, ax, head=slot, matrix=name).set_title(name, fontsize=10)
            ax.set(ylabel="", xlabel="")
            if name != "query":
                ax.set_yticks([])
        figures.append(report.figure(drawing, f"`{slot}`: {head}"))
    return [report.heading("All weights of the first circuit"), report.text(WEIGHTS),
            report.section(*figures, kind="columns")]  # fmt: skip


def _figure(width: float, height: float, columns: int) -> tuple["Figure", list["Axes"]]:
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    return drawing, list(drawing.subplots(1, columns, squeeze=False)[0])
