"""`lloydformer demo`: every circuit of the table on built-in data, checked, and a page."""

from pathlib import Path
from typing import Annotated

import typer

from lloydformer.app.cli.terminal import print_json, print_table, progress, stderr, stdout
from lloydformer.app.options import Json, force_option, seed_option
from lloydformer.data.storage.atomic_files import refuse_to_overwrite

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
        int, seed_option(help="Seed of the points, the first centers and the noise.")
    ] = 0,
    force: Annotated[bool, force_option(help="Replace the page if it exists.")] = False,
    json: Json = False,
) -> None:
    """Run the paper's circuits on built-in data, and write a page.

    Ten layers of each circuit of the paper's table run on points in the plane and on handwritten
    digits, and are compared with the plain algorithm, layer by layer. The page shows the moving
    centers and the attention maps. Takes about ten seconds; status 1 if a circuit differs from its
    algorithm.
    """
    refuse_to_overwrite(output, force)  # before torch is imported
    from lloydformer.app.jobs.demo import as_rows, demo_cases, run_circuits
    from lloydformer.app.jobs.demo_page import write_page

    cases = demo_cases(seed)

    def describe_stop(done: int) -> str:
        return f"stopped: {done} of {len(cases)} runs were done; no page written"

    with progress("clustering", len(cases), describe_stop) as bar:
        done = run_circuits(
            cases,
            N_LAYERS,
            lambda run: bar.step(f"{run.case.recipe.name} on {run.case.problem.family}"),
        )
    missing = write_page(output, done, seed)
    if json:
        print_json({"seed": seed, "page": None if missing else str(output), "rows": as_rows(done)})
    else:
        pairs = [(run.case.recipe, run.cells) for run in done]
        print_table(
            COLUMNS, [[r.name, r.algorithm.split(" / ")[-1].lstrip("*"), *c] for r, c in pairs]
        )
        stdout.print(f"\n{LEGEND}")
    # On standard error: with --json, standard output has the object and nothing else.
    words = f"no page: {missing}" if missing else f"page: {output}"
    stderr.print(words, soft_wrap=True)
    if not all(run.equal for run in done):
        raise typer.Exit(1)
