"""`lloydformer demo`: every circuit of the table on built-in data, checked, and a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.app.cli.terminal import print_json, print_table, progress, stderr, stdout
from lloydformer.app.options import LARGEST_SEED, integer
from lloydformer.data.storage.atomic_files import refuse_to_overwrite

if TYPE_CHECKING:
    from lloydformer.app.jobs.demo import CircuitRun
    from lloydformer.paper.verify.cases import Case

N_LAYERS = 10
COLUMNS = ("recipe", "algorithm", "data", "start", "end", "labels", "centers", "verdict")
LEGEND = (
    "start, end: the k-means objective before the first layer and after the last. labels, centers: "
    "how many labels differ from the plain algorithm's, and by how many spreads of the data the "
    "centers differ."
)


def demo(
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="The page to write: one HTML file, for a browser."),
    ] = Path("lloydformer-demo.html"),
    seed: Annotated[
        int,
        integer(
            least=0, most=LARGEST_SEED, help="Seed of the points, the first centers and the noise."
        ),
    ] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace the page if it exists.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the paper's circuits on built-in data, and write a page.

    Ten layers of each circuit of the paper's table run on points in the plane and on handwritten
    digits, and are compared with the plain algorithm, layer by layer. The page shows the moving
    centers and the attention maps. Takes about ten seconds; status 1 if a circuit differs from its
    algorithm.
    """
    refuse_to_overwrite(output, force)
    from lloydformer.app.jobs.demo import as_rows, demo_cases
    from lloydformer.app.jobs.demo_page import write_page

    done = _run(demo_cases(seed))
    missing = write_page(output, done, seed)
    if json:
        print_json({"seed": seed, "page": None if missing else str(output), "rows": as_rows(done)})
    else:
        print_table(COLUMNS, [_cells(run) for run in done])
        stdout.print(f"\n{LEGEND}")
    words = f"no page: {missing}" if missing else f"page: {output}"
    stderr.print(words, markup=False, soft_wrap=True)
    if not all(run.equal for run in done):
        raise typer.Exit(1)


def _run(tried: "list[Case]") -> "list[CircuitRun]":
    """Run the circuits with a progress bar; on Ctrl-C, print how many are done."""
    from lloydformer.app.jobs.demo import run_circuits

    done: list[CircuitRun] = []
    with progress("clustering", len(tried)) as bar:

        def after(run: "CircuitRun") -> None:
            done.append(run)
            bar.advance(f"{run.case.recipe.name} on {run.case.problem.family}")

        try:
            return run_circuits(tried, N_LAYERS, after)
        except KeyboardInterrupt:
            stderr.print(f"stopped: {len(done)} of {len(tried)} runs were done; no page written")
            raise


def _cells(run: "CircuitRun") -> list[str]:
    recipe = run.case.recipe
    return [recipe.name, recipe.algorithm.split(" / ")[-1].lstrip("*"), *run.cells]
