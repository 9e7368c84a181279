"""`lloydformer fit`: cluster the rows of a file; write labels, centers, a model and a page."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from lloydformer.cli.fit_cluster import check_for_cluster, default_folder, fit_on_cluster
from lloydformer.cli.fit_words import (
    fit_progress,
    print_files,
    print_notes,
    print_result,
    print_runs,
    report_interrupt,
)
from lloydformer.cli.options import (
    LARGEST_SEED,
    Decimal,
    Encoding,
    Header,
    IdColumn,
    Sep,
    Sheet,
    choice,
    integer,
    names_of,
    stem_of,
)
from lloydformer.cli.terminal import print_json, working
from lloydformer.data.paths import check_source
from lloydformer.data.table_options import TableOptions
from lloydformer.jobs.fit.model_path import check_model
from lloydformer.jobs.fit.settings import (
    CRITERIA,
    FitSettings,
    algorithms,
    check_algorithm,
    check_criterion,
    name_or_number,
    numbers_of_clusters,
)


def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A .csv, .tsv, .xlsx, .parquet, .npy or .npz file, a text compressed as .gz or "
            ".zst, a folder of them, - for standard input, or openml:NAME.",
        ),
    ],
    clusters: Annotated[
        str | None,
        typer.Option(
            "-k",
            "--clusters",
            metavar="K",
            help="Number of clusters: 10. Or a range, 2:20, or 2:20:2 with a step: each is fitted, "
            "and --select says which is written.",
        ),
    ] = None,
    select: Annotated[
        str,
        choice(
            among=CRITERIA,
            metavar="|".join(CRITERIA),
            help="How the number of clusters is chosen from a range.",
        ),
    ] = CRITERIA[0],
    algorithm: Annotated[
        str, choice(among=algorithms(), help=f"One of {', '.join(algorithms())}.")
    ] = "kmeans",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="Output folder.  [default: NAME-clusters]",
        ),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Also write an HTML page.")] = False,
    labels: Annotated[
        str, choice(among=("csv", "parquet"), metavar="csv|parquet", help="Format of the labels.")
    ] = "csv",
    columns: Annotated[
        str | None,
        typer.Option(metavar="a,b,c", help="Columns by name; without names, by number from 1."),
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(metavar="a,b,c", help="Columns to leave out.")
    ] = None,
    numeric_only: Annotated[
        bool, typer.Option("--numeric-only", help="Leave out columns that hold no numbers.")
    ] = False,
    one_hot: Annotated[
        str | None,
        typer.Option(
            "--one-hot",
            metavar="a,b,c",
            help="Columns of words: a column of 0 and 1 for each word.",
        ),
    ] = None,
    id_column: IdColumn = None,
    missing: Annotated[
        str,
        choice(
            among=("error", "drop", "median"),
            metavar="error|drop|median",
            help="Rows with missing values: an error, left out, or filled with medians.",
        ),
    ] = "error",
    scale: Annotated[
        str | None,
        choice(
            among=("minmax", "standard"),
            metavar="minmax|standard",
            help="Scale columns before the fit.",
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            help="k-means++, k-means|| (for large data), robust (with outliers) or random."
        ),
    ] = None,
    n_init: Annotated[
        int | None,
        integer("--n-init", help="Number of starts; the best is kept."),
    ] = None,
    max_iter: Annotated[
        int | None,
        integer("--max-iter", help="Maximum number of iterations of a start."),
    ] = None,
    tol: Annotated[
        float | None, typer.Option(min=0, help="Stop when the centers move less than this.")
    ] = None,
    seed: Annotated[
        int, integer(least=0, most=LARGEST_SEED, help="Seed of all random numbers.")
    ] = 0,
    keep: Annotated[
        float | None, typer.Option(help="trimmed: fraction of each cluster that is kept.")
    ] = None,
    inverse_temperature: Annotated[
        float | None,
        typer.Option(
            "--inverse-temperature",
            help="soft: large is nearly k-means; robust: small is.",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        integer(help="relocating, medoids: stop after this many tries without gain."),
    ] = None,
    effort: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="relocating: low, medium, high, best or a number of recombinations; "
            "medoids: quick, balanced or thorough.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            help="relocating: stop after this many seconds; seeding is completed first.",
        ),
    ] = None,
    start_from: Annotated[
        Path | None,
        typer.Option("--start-from", metavar="MODEL", help="Start from the centers of this model."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the state of the fit to FILE every few iterations; the same command goes "
            "on from there after a break.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Fit on a Dask cluster, as tcp://scheduler:8786. Its workers read DATA: .parquet, "
            ".npy and .csv files, folders, and patterns in quotes such as 's3://b/*.parquet'.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        integer(help="The same with this number of processes on this machine."),
    ] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    header: Header = None,
    sheet: Sheet = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Cluster the rows of DATA.

    Writes a folder with the labels (row, cluster, distance to the center), centers.csv in the
    units of the data, summary.json, the model for `lloydformer predict`, and with --report a
    self-contained page report.html.
    """
    table = TableOptions(
        names_of(columns), names_of(exclude) or (), names_of(one_hot) or (), numeric_only,
        id_column, missing, sep, decimal, encoding, header, sheet, shell=True,
    )  # fmt: skip
    check_criterion(select)
    check_algorithm(algorithm)  # this and the next lines before torch is imported
    if clusters is not None:
        numbers_of_clusters(clusters)
    on_cluster = cluster is not None or workers is not None
    if on_cluster:
        refused = {
            "--report": report, "--scale": scale, "--numeric-only": numeric_only,
            "--one-hot": one_hot, "--id-column": id_column, "--missing": missing != "error",
            "--start-from": start_from, "--sheet": sheet, "--encoding": encoding,
            "--time-limit": time_limit,
        }  # fmt: skip
        check_for_cluster(cluster, workers, refused)
    else:
        check_source(data)
    if start_from is not None and init is None and n_init is None:  # else both are refused
        check_model(start_from)
    from lloydformer.jobs.fit.job import FitJob
    from lloydformer.jobs.fit.outputs import FitOutputs
    from lloydformer.jobs.fit.request import FitRequest

    options = {
        "init": init, "n_init": n_init, "max_iter": max_iter, "tol": tol, "keep": keep,
        "inverse_temperature": inverse_temperature, "patience": patience,
        "effort": name_or_number(effort), "time_limit": time_limit, "random_state": seed,
        "checkpoint": None if checkpoint is None else str(checkpoint),
    }  # fmt: skip
    settings = FitSettings(algorithm, options)
    command = shlex.join(["lloydformer", *sys.argv[1:]])
    if on_cluster:
        outputs = FitOutputs(output or default_folder(data), labels, False, force)
        return fit_on_cluster(
            data, clusters, settings, table, outputs, (cluster, workers), command, json=json
        )
    request = FitRequest(data, settings, clusters, table, scale, start_from, command, select)
    folder = output or Path(f"{stem_of(data)}-clusters")
    job = FitJob(request, FitOutputs(folder, labels, report, force), seed)
    with report_interrupt(job.runs):
        with working("reading"):
            blocks = job.read()
        with fit_progress(request.numbers) as callbacks:
            result = job.fit(blocks, *callbacks)
        summary = job.write(result)
    if json:
        return print_json(summary)
    print_runs(job.runs, result)
    print_result(result)
    print_notes(job.runs.notes, job.runs.advice)
    print_files(job.outputs)
    return None
