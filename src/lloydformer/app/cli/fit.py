"""`lloydformer fit`: cluster the rows of a file; write labels, centers, a model and a page."""

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lloydformer.app.cli.terminal import print_json, print_table, progress, stderr, stdout, working
from lloydformer.app.jobs.fit.settings import FitSettings
from lloydformer.app.options import Json, command_of
from lloydformer.profiles.words import format_count, format_number

if TYPE_CHECKING:
    from lloydformer.app.jobs.fit.result import FitResult, FitRun
    from lloydformer.profiles.assignment import ClusterTotals


@command_of(FitSettings)
def fit(settings: FitSettings, json: Json = False) -> None:
    """Cluster the rows of DATA.

    Writes a folder with the labels (row, cluster, distance to the center), centers.csv in the
    units of the data, summary.json, the model for `lloydformer predict`, and with --report a
    self-contained page report.html.
    """
    command = shlex.join(["lloydformer", *sys.argv[1:]])
    # No row comes to this process then, so there is no silhouette, no advice and no page.
    if settings.is_on_cluster:
        return _fit_on_cluster(settings, command, json)
    from lloydformer.app.jobs.fit.job import FitJob

    job, done = FitJob(settings, command), list["FitRun"]()
    with report_interrupt(lambda stop: describe_stop(done, stop)):
        with working("reading"):
            table, blocks = job.read()
        with fit_progress(job.numbers, done) as (callback, after):
            result = job.fit(table, blocks, callback, after)
        summary = job.write(result)
    if json:
        return print_json(summary)
    _print_result(settings, result, summary)
    print_notes(result.notes, result.advice)
    return _print_files(settings)


def _fit_on_cluster(settings: FitSettings, command: str, json: bool) -> None:
    from lloydformer.app.jobs.fit.cluster import ClusterFitJob, connect

    job = ClusterFitJob(settings, command)
    with connect(settings.cluster, settings.workers) as client, report_interrupt():
        if stderr.is_terminal:
            stderr.print(f"dashboard: {client.dashboard_link}")
        with fit_progress([job.n_clusters]) as (callback, _), working("reading"):
            model, totals, summary = job.run(client, callback)
    if json:
        return print_json(summary)
    print_clusters(totals)
    stdout.print(f"\nobjective {format_number(model.inertia_, 6)}")
    stdout.print(f"{format_count(model.n_iter_, 'iteration')}, {_format_rate(summary)}")
    return _print_files(settings)


@contextmanager
def fit_progress(
    numbers: Sequence[int], done: "list[FitRun] | None" = None
) -> "Iterator[tuple[Any, Callable[[FitRun], None]]]":
    """Show a progress bar on standard error, if that is a terminal.

    It counts fits if there are several numbers of clusters, else iterations. Yields the callbacks
    of `FitJob.fit`; the second adds each fit to `done`.
    """
    from lloydformer.solving.progress import ProgressBar

    done = [] if done is None else done
    # With several fits, a bar of iterations would start over and over.
    if len(numbers) > 1:
        with progress("fitting", len(numbers)) as bar:

            def after(run: "FitRun") -> None:
                done.append(run)
                bar.step(f"k {run.k} done")

            yield None, after
    elif stderr.is_terminal:
        with ProgressBar() as callback:
            yield callback, done.append
    else:
        yield None, done.append


@contextmanager
def report_interrupt(
    describe: Callable[[KeyboardInterrupt], str] = lambda stop: "before all rows were labelled",
) -> Iterator[None]:
    """On Ctrl-C, print in one line what is done so far."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stderr.print(f"stopped: {describe(stop)}; no file was written", soft_wrap=True)
        raise


def describe_stop(done: "Sequence[FitRun]", stop: KeyboardInterrupt) -> str:
    """Describe the fits that are done, or the iterations of the first one."""
    from lloydformer.solving.driver import Interrupted

    if done:
        best = max(done, key=lambda run: run.score)
        value = _three_digits(best.value)
        if len(done) == 1:
            return f"k {best.k} is done, with {best.criterion_name} {value}"
        return (
            f"k {done[0].k} to {done[-1].k} are done, the best {best.criterion_name} is {value} "
            f"with k {best.k}"
        )
    result = stop.result if isinstance(stop, Interrupted) else None
    if result is None:
        return "before the first iteration was done"
    return (
        f"objective {result.inertia:.6g} after {format_count(result.n_iter, 'iteration')} "
        f"(--max-iter {result.n_iter} gives this result)"
    )


def _print_result(settings: FitSettings, result: "FitResult", summary: dict[str, Any]) -> None:
    """Print the numbers of clusters if there are several, the clusters, and the fit."""
    select = settings.select
    if len(result.runs) > 1:
        columns = ["k", "objective", "silhouette", "iterations", "seconds"]
        rows = [
            [
                *(str(run.k), format_number(run.objective, 6), _three_digits(run.silhouette)),
                *(f"{run.n_iter:,}", f"{run.seconds:.2f}"),
            ]
            for run in result.runs
        ]
        if select != "silhouette":
            columns.insert(3, result.runs[0].criterion_name)
            for row, run in zip(rows, result.runs, strict=True):
                row.insert(3, _three_digits(run.value))
        print_table(columns, rows)
        stdout.print(f"\n{_describe_choice(select, result)}, and was written.")
    if result.evidence is not None:
        stdout.print(f"{result.evidence.sentence}\n", soft_wrap=True)
    print_clusters(result.totals)
    model = result.model
    stdout.print(
        f"\nobjective {format_number(model.inertia_, 6)}, silhouette "
        f"{_three_digits(result.silhouette)} "
        f"(sample of {len(result.sample_silhouettes[0]):,} rows)"
    )
    most = ", the most allowed" if result.reached_max_iter else ""
    stdout.print(f"{format_count(model.n_iter_, 'iteration')}{most}, {_format_rate(summary)}")


def _describe_choice(select: str, result: "FitResult") -> str:
    """Return how the number of clusters was chosen."""
    k, n_rows = result.n_clusters, result.blocks.n_rows
    if select == "auto":
        assert result.evidence is not None
        rows, numbers = result.evidence.n_rows, [run.k for run in result.runs]
        sample = f", on a sample of {format_count(rows, 'row')}" if rows < n_rows else ""
        return f"k {k} was chosen from {numbers[0]} to {numbers[-1]}{sample}"
    # The gap and the stability choose by a rule, not by the largest value.
    by_rule = select in ("gap", "stability")
    return f"k {k} was chosen by {select}" if by_rule else f"k {k} has the best {select}"


def print_clusters(totals: "ClusterTotals") -> None:
    """Print a line for each cluster: its size, its share of all rows, its mean distance."""
    columns = ["cluster", "size", "share", "mean distance"]
    pairs = zip(totals.sizes, totals.mean_distances, strict=True)
    rows = [
        [str(j), f"{size:,}", f"{100 * size / totals.n_rows:.1f}%", format_number(distance)]
        for j, (size, distance) in enumerate(pairs)
    ]
    if totals.left_out is not None:
        columns.append("left out")
        rows = [[*row, f"{count:,}"] for row, count in zip(rows, totals.left_out, strict=True)]
    print_table(columns, rows)


def print_notes(notes: Sequence[str], advice: Sequence[str] = ()) -> None:
    """Print what was recognised or left out, and advice, a line each on standard error."""
    for line in (*(f"note: {note}" for note in notes), *(f"advice: {a}" for a in advice)):
        stderr.print(line, soft_wrap=True)


def _print_files(settings: FitSettings) -> None:
    from lloydformer.app.jobs.fit.outputs import output_names

    names = ", ".join(output_names(settings))
    stdout.print(f"\nin {settings.folder}: {names}", soft_wrap=True)


def _three_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"


def _format_rate(summary: dict[str, Any]) -> str:
    speed = float(f"{summary['points_per_second']:.3g}")
    return f"{summary['seconds']:.2f} s, {speed:,.0f} points/s"
