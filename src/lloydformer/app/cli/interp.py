"""`lloydformer interp`: print how well methods find the circuits of the recipes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from lloydformer.app.cli.terminal import print_json, print_table, progress, stdout
from lloydformer.app.options import Json, force_option, seed_option


def interp(
    recipe: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this recipe; repeatable.")
    ] = None,
    form: Annotated[
        list[str] | None,
        typer.Option(metavar="FORM", help="Only plain, disguised or trained; repeatable."),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="More temperatures and inputs; takes about an hour.")
    ] = False,
    seed: Annotated[int, seed_option(help="Seed of inputs, noise and disguises.")] = 0,
    result: Annotated[
        Path | None, typer.Option(help="Show a result from a file; measure nothing.")
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="A .json file, or the curves: .png, .svg; repeatable."),
    ] = None,
    force: Annotated[bool, force_option(help="Replace files that exist.")] = False,
    json: Json = False,
) -> None:
    """Score methods that find circuits in networks, on circuits that are known.

    Activation patching, edge attribution, integrated gradients and ACDC score the edges of a layer:
    all recipes, plain and disguised, from soft heads to heads that choose, and the trained layers
    of the package. The table has areas under the curve of true over false positives: 1 is perfect,
    0.5 a guess. Takes a few minutes.
    """
    from lloydformer.app.jobs.bench.result import check_output
    from lloydformer.app.jobs.interp import InterpJob, load_scores, write_scores

    # Before anything is measured: minutes of work must not end with a wrong name.
    for path in output or []:
        check_output(path, force)
    if result is not None:
        answer = load_scores(result)
    else:
        job = InterpJob(recipe or [], form or [], full, seed)

        def describe_stop(done: int) -> str:
            return f"stopped: {done} of {len(job.cases)} cases were measured, none is kept"

        with progress("interp", len(job.cases), describe_stop) as bar:
            answer = job.run(bar.step)
    for path in output or []:
        write_scores(answer, path)
    if json:
        return print_json(answer)
    return _print(answer)


def _print(answer: dict[str, Any]) -> None:
    """Print the mean areas by temperature, and those of each recipe in the limit."""
    from lloydformer.interp.benchmark import mean_areas

    methods, rows = answer["methods"], answer["rows"]

    def write(areas: Mapping[str, float | None]) -> list[str]:
        found = [areas.get(method) for method in methods]
        return ["-" if area is None else f"{area:.2f}" for area in found]

    levels = []
    for form, gamma, areas in mean_areas([*rows.values()]):
        limit = "its own" if form == "trained" else "limit"
        levels.append([form, limit if gamma is None else f"{gamma:g}", *write(areas)])
    print_table(["circuits", "inverse temperature", *methods], levels)
    last = [row for row in rows.values() if row["inverse_temperature"] is None]
    cells = [
        [r["name"], r["form"], f"{r['n_in_circuit']} of {r['n_edges']}", *write(r["area"])]
        for r in last
    ]
    if cells:
        stdout.print()
        print_table(["heads that choose", "circuits", "edges", *methods], cells)
    stdout.print(
        "\nArea under the curve of true over false positives, 1 is perfect, 0.5 a guess; means "
        "over the recipes. Of a trained layer, the half of the edges with the largest exact "
        "effects counts as its circuit.",
        soft_wrap=True,
    )
