"""`lloydformer fit`: cluster a file of points, and leave labels, centers, a model and a page."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from lloydformer.cli.fitted import (
    fitted,
    print_files,
    print_found,
    print_runs,
    split,
    stopping,
)
from lloydformer.cli.terminal import print_json
from lloydformer.jobs.fit.found import Found
from lloydformer.jobs.fit.outputs import Outputs
from lloydformer.jobs.fit.request import Request
from lloydformer.jobs.fit.runs import Runs
from lloydformer.jobs.fit.settings import Settings
from lloydformer.jobs.fit.summary import summary


def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A .csv, .tsv, .parquet, .npy or .npz file, a folder of them, or an OpenML name.",
        ),
    ],
    clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--clusters",
            metavar="K",
            help="How many clusters: 10. Or a range, 2:20 or 2:20:2: all are fitted, and the one "
            "with the best silhouette is written.",
        ),
    ] = None,
    algorithm: Annotated[
        str, typer.Option(help="kmeans, relocating, soft, spherical, trimmed, robust or medoids.")
    ] = "kmeans",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Where the files go.  [default: NAME-clusters]"
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Write a page to look at.")] = False,
    labels: Annotated[str, typer.Option(metavar="csv|parquet", help="How labels are written.")] = (
        "csv"
    ),
    columns: Annotated[
        str | None,
        typer.Option(metavar="a,b,c", help="Columns by name; by number, from 1, without names."),
    ] = None,
    scale: Annotated[
        str | None, typer.Option(metavar="minmax|standard", help="Scale columns before fitting.")
    ] = None,
    init: Annotated[
        str | None, typer.Option(help="k-means++, k-means|| for large data, or random.")
    ] = None,
    n_init: Annotated[
        int | None, typer.Option("--n-init", min=1, help="So many starts; the best is kept.")
    ] = None,
    max_iter: Annotated[
        int | None, typer.Option("--max-iter", min=1, help="At most so many iterations a start.")
    ] = None,
    tol: Annotated[
        float | None, typer.Option(min=0, help="Stop when the centers move less than this.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Everything drawn depends on it.")] = 0,
    keep: Annotated[
        float | None, typer.Option(help="trimmed: the part of each cluster that counts.")
    ] = None,
    inverse_temperature: Annotated[
        float | None,
        typer.Option(
            "--inverse-temperature", help="soft: large is nearly k-means; robust: small is."
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(min=1, help="relocating, medoids: so many tries without gain are the end."),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option("--start-from", metavar="MODEL", help="Begin at the centers of this model."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Cluster the rows of DATA.

    Writes a folder with the labels (row, cluster, distance from the center), centers.csv in the
    units of the data, summary.json, the model for `lloydformer predict`, and with --report a page
    report.html that needs nothing else.
    """
    options = {
        "init": init, "n_init": n_init, "max_iter": max_iter, "tol": tol, "keep": keep,
        "inverse_temperature": inverse_temperature, "patience": patience, "random_state": seed,
    }  # fmt: skip
    command = shlex.join(["lloydformer", *sys.argv[1:]])
    request = Request(
        data, Settings(algorithm, options), clusters, split(columns), scale, start_from, command
    )
    folder = output or Path(f"{Path(data).resolve().stem}-clusters")
    outputs = Outputs(folder, labels, report, force)
    outputs.check(data)
    runs = Runs(request.started, seed)
    with stopping(runs):
        found = fitted(runs, request)
        said = summary(request, runs, found, outputs)
        outputs.write(found, said, _page(request, runs, found) if report else None)
    if json:
        return print_json(said)
    print_runs(runs, found)
    print_found(found, runs.notes)
    print_files(outputs)
    return None


def _page(request: Request, runs: Runs, found: Found) -> str:
    from lloydformer.jobs.fit.page import fit_page  # matplotlib takes a second to import

    return fit_page(request, runs, found)
