"""The HTML page of the demo; its text is in demo.html."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from lloydformer import __version__, plots
from lloydformer.app.jobs.demo import DIGITS, PLANE, CircuitRun, format_deviation
from lloydformer.circuits import recipes
from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.outside import EXPLAINED
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.plots import report
from lloydformer.plots.axes import require_matplotlib
from lloydformer.plots.heatmaps import MATRICES
from lloydformer.plots.report.circuit import Images, circuit_values


def write_page(path: Path, runs: Sequence[CircuitRun], seed: int) -> str | None:
    """Write the page and return None; without matplotlib, write none and return the reason."""
    # matplotlib is an extra: the command prints its table without it.
    try:
        require_matplotlib()
    except ImportError as error:
        return str(error)
    atomic_write_text(path, demo_page(runs, seed))
    return None


def demo_page(runs: Sequence[CircuitRun], seed: int) -> str:
    """Return the HTML of the page.

    Parameters
    ----------
    runs : sequence of CircuitRun
        Runs of the same recipes, in the same order, on the plane and on the digits.
    seed : int
        The seed of the demo, which the page prints.
    """
    from matplotlib.figure import Figure

    by_data = {
        family: [run for run in runs if run.case.problem.family == family]
        for family in (PLANE, DIGITS)
    }
    cards = []
    for flat, images in zip(by_data[PLANE], by_data[DIGITS], strict=True):
        both = flat.deviation + images.deviation  # the largest deviation, the sum of the counts
        shown = Images(images.trace, (8, 8))
        card = {
            **circuit_values(flat.case.recipe, flat.trace, recipes.lloyd(), shown),
            "equal": flat.equal and images.equal,
            "n_labels": both.labels,
            "deviation": format_deviation(both.centers),
            "n_digits": images.trace.points.shape[-2],
        }
        cards.append(card)
    objectives = []
    for family, own in by_data.items():
        drawing = Figure(figsize=(5.2, 3.6), layout="constrained")
        traces = {run.case.recipe.name: run.trace for run in own}
        plots.objective_curve(traces, drawing.subplots(), relative=True)
        words = f"The k-means objective on the {family}, divided by its value at the start."
        objectives.append(report.figure(drawing, words))
    return report.render(
        Path(__file__).with_name("demo.html"),
        n_layers=runs[0].trace.n_layers,
        cards=cards,
        checks=[[f"`{run.case.recipe.name}`", *run.cells] for run in runs],
        outside=list(outside_rows(by_data[PLANE])),
        objectives=objectives,
        weights=list(_weight_figures(by_data[PLANE][0])),
        seed=seed,
        version=__version__,
    )


def outside_rows(runs: Sequence[CircuitRun]) -> Iterator[list[str]]:
    """Yield the rows of a table: each value that attention does not compute, explained.

    Four cells: name, explanation, what happens without it, and its values in the first layers.
    """
    used = {run.case.recipe.name: dict(run.trace.outside[0].items()) for run in runs}
    for name, (what, without) in EXPLAINED.items():
        users: dict[str, list[str]] = {}  # the recipes by the value that they use
        for recipe, own in used.items():
            if name in own:
                users.setdefault(own[name], []).append(f"`{recipe}`")
        # Equal values are written once: seven times the same one would fill the cell.
        groups = [
            f"all: {value}" if len(names) == len(runs) else f"{', '.join(names)} {value}"
            for value, names in users.items()
        ]
        yield [f"`{name}`", what, without, "; ".join(groups) or "not used"]


def _weight_figures(run: CircuitRun) -> Iterator[Markup]:
    """Yield one figure for each head, with its query, key and value matrices."""
    from matplotlib.figure import Figure

    _, n_clusters, n_features = run.trace.centers.shape
    circuit = Circuit(run.case.recipe, n_features, n_clusters)
    for slot, head in run.case.recipe.heads.items():
        drawing = Figure(figsize=(5.2, 2.3), layout="constrained")
        # The three matrices share the names of the subspaces at the left edge.
        for ax, name in zip(drawing.subplots(1, len(MATRICES)), MATRICES, strict=True):
            plots.weights(circuit, ax, head=slot, matrix=name).set_title(name, fontsize=10)
            ax.set(ylabel="", xlabel="")
            if name != "query":
                ax.set_yticks([])
        yield report.figure(drawing, f"`{slot}`: {head}")
