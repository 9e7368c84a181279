"""`lloydformer demo`: every row of the table on embedded data, checked, and a page to look at."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import torch
import typer

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.trace import Trace
from lloydformer.cli.terminal import (
    print_json,
    print_table,
    progress,
    refuse_to_overwrite,
    stderr,
    stdout,
)
from lloydformer.jobs.demo.data import cases, digits, plane
from lloydformer.jobs.demo.page import Run, demo_page
from lloydformer.plots.axes import require_matplotlib
from lloydformer.report.circuit import KEEP
from lloydformer.storage.atomic import write_whole
from lloydformer.verify.cases import Case
from lloydformer.verify.compare import layer_by_layer

N_LAYERS = 10
COLUMNS = ("recipe", "algorithm", "data", "start", "end", "labels", "centers", "verdict")
LEGEND = (
    "start, end: k-means objective before the first layer and after the last. labels, centers: "
    "how many differ from the plain algorithm's, and by how much, in spreads of the data."
)


def demo(
    output: Annotated[
        Path, typer.Option(help="Where the page is written: one HTML file, to open in a browser.")
    ] = Path("lloydformer-demo.html"),
    seed: Annotated[
        int, typer.Option(min=0, help="Draws the points in the plane, the first centers and noise.")
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Cluster embedded data with every row of the table, check each, and write a page.

    Ten layers of each circuit run on points in the plane and on handwritten digits, and are
    compared with the plain algorithm, layer by layer. The page shows the centers moving and the
    attention maps. Takes about ten seconds; status 1 if a circuit differs from its algorithm.
    """
    refuse_to_overwrite(output, force)
    tried = [*cases(plane(seed), seed), *cases(digits(seed), seed)]
    with progress("clustering", len(tried)) as bar, _one_thread():
        done = run_all(tried, N_LAYERS, bar.advance)
    missing = _missing()
    if missing is None:
        write_whole(output, demo_page(done, seed))
    if json:
        print_json({"seed": seed, "page": None if missing else str(output), "rows": as_rows(done)})
    else:
        print_table(COLUMNS, [_cells(run) for run in done])
        stdout.print(f"\n{LEGEND}")
    words = f"no page: {missing}" if missing else f"page: {output}"
    stderr.print(words, markup=False, soft_wrap=True)
    if not all(run.equal for run in done):
        raise typer.Exit(1)


def run_all(
    tried: Sequence[Case], n_layers: int, advance: Callable[[str], None] = lambda what: None
) -> list[Run]:
    """Each circuit's trace, and how far each layer is from the algorithm's iteration."""
    done: list[Run] = []
    try:
        for case in tried:
            done.append(Run(case, _trace(case, n_layers), layer_by_layer(case, n_layers)))
            advance(f"{case.recipe.name} on {case.problem.family}")
    except KeyboardInterrupt:
        stderr.print(f"stopped: {len(done)} of {len(tried)} runs were done, no page was written")
        raise
    return done


def as_rows(done: Sequence[Run]) -> dict[str, dict[str, object]]:
    """What was measured, by recipe and data."""
    rows: dict[str, dict[str, object]] = {}
    for run in done:
        row = rows.setdefault(run.case.recipe.name, {"algorithm": run.case.recipe.algorithm})
        row[run.case.problem.family] = {
            "objective_start": run.trace.objective[0].item(),
            "objective_end": run.trace.objective[-1].item(),
            "labels_differing": run.deviation.labels,
            "largest_deviation": run.deviation.centers,
            "verdict": run.verdict,
        }
    return rows


def _trace(case: Case, n_layers: int) -> Trace:
    points, centers = torch.tensor(case.problem.points), torch.tensor(case.problem.centers)
    circuit = Circuit(case.recipe, n_features=points.shape[1], n_clusters=len(centers))
    return circuit(points, centers, n_layers, keep=KEEP, seed=case.seed)


def _cells(run: Run) -> list[str]:
    recipe = run.case.recipe
    return [recipe.name, recipe.algorithm.split(" / ")[-1].lstrip("*"), *run.measured]


@contextmanager
def _one_thread() -> Iterator[None]:
    """These problems are small: a second thread would wait more than it works."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _missing() -> str | None:
    try:
        require_matplotlib()
    except ImportError as error:
        return str(error)
    return None
