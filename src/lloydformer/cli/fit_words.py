"""What `fit` and `predict` print: progress, tables, and a line on Ctrl-C."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from lloydformer.cli.terminal import print_table, progress, stderr, stdout
from lloydformer.jobs.fit.words import counted, plain

if TYPE_CHECKING:
    from lloydformer.jobs.fit.outputs import FitOutputs
    from lloydformer.jobs.fit.result import FitResult
    from lloydformer.jobs.fit.runs import FitRun, FitRuns

Callbacks = tuple[Any, Callable[["FitRun"], None]]
"""For `FitJob.fit`: called after each iteration, and after each number of clusters."""


@contextmanager
def fit_progress(numbers: Sequence[int]) -> Iterator[Callbacks]:
    """A progress bar on standard error, if that is a terminal.

    It counts fits if there are several numbers of clusters, else iterations.
    """
    from lloydformer.solving.progress import ProgressBar

    if len(numbers) > 1:
        with progress("fitting", len(numbers)) as bar:
            yield None, lambda run: bar.advance(f"k {run.k} done")
    elif stderr.is_terminal:
        with ProgressBar() as callback:
            yield callback, lambda run: None
    else:
        yield None, lambda run: None


@contextmanager
def report_interrupt(runs: "FitRuns | None" = None) -> Iterator[None]:
    """On Ctrl-C, print in one line what is done so far."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stderr.print(f"stopped: {_so_far(runs, stop)}; no file was written", soft_wrap=True)
        raise


def _so_far(runs: "FitRuns | None", stop: KeyboardInterrupt) -> str:
    from lloydformer.solving.solve import Interrupted

    if runs is None:
        return "before all rows were labelled"
    if runs.done:
        return _best_of(runs)
    result = stop.result if isinstance(stop, Interrupted) else None
    if result is None:
        return "before the first iteration was done"
    return (
        f"objective {result.inertia:.6g} after {counted(result.n_iter, 'iteration')} "
        f"(--max-iter {result.n_iter} gives this result)"
    )


def _best_of(runs: "FitRuns") -> str:
    best = max(runs.done, key=lambda run: run.score)
    if len(runs.done) == 1:
        return f"k {best.k} is done, with {best.criterion} {_three_digits(best.value)}"
    return (
        f"k {runs.done[0].k} to {runs.done[-1].k} are done, the best {best.criterion} is "
        f"{_three_digits(best.value)} with k {best.k}"
    )


def print_runs(runs: "FitRuns", result: "FitResult") -> None:
    """A table of the numbers of clusters, if there are several."""
    if len(runs.done) < 2:
        return
    other = [] if runs.select == "silhouette" else [runs.select]
    rows = [
        [str(run.k), plain(run.objective, 6), _three_digits(run.silhouette),
         *(_three_digits(run.value) for _ in other), f"{run.n_iter:,}", f"{run.seconds:.2f}"]
        for run in runs.done
    ]  # fmt: skip
    print_table(["k", "objective", "silhouette", *other, "iterations", "seconds"], rows)
    chosen = f"has the best {runs.select}"
    if runs.select in ("gap", "stability"):
        chosen = f"was chosen by {runs.select}"
    stdout.print(f"\nk {result.n_clusters} {chosen}, and was written.\n")


def print_result(result: "FitResult") -> None:
    """A table of the clusters, then the fit in two lines."""
    from lloydformer.jobs.fit.summary import points_per_second

    print_clusters(result.sizes, result.mean_distances, result.blocks.n_rows, result.left_out)
    model = result.model
    stdout.print(
        f"\nobjective {plain(model.inertia_, 6)}, silhouette {_three_digits(result.silhouette)} "
        f"(sample of {len(result.sampled[0]):,} rows)"
    )
    most = ", the most allowed" if result.reached_max_iter else ""
    stdout.print(
        f"{counted(model.n_iter_, 'iteration')}{most}, {result.seconds:.2f} s, "
        f"{float(f'{points_per_second(result):.3g}'):,.0f} points/s"
    )


def print_notes(notes: Sequence[str], advice: Sequence[str] = ()) -> None:
    """What was recognised or left out, and advice, a line each on standard error."""
    for line in (*(f"note: {note}" for note in notes), *(f"advice: {a}" for a in advice)):
        stderr.print(line, markup=False, soft_wrap=True)


def print_clusters(
    sizes: Sequence[int],
    distances: Sequence[float],
    n_rows: int,
    left_out: Sequence[int] | None = None,
) -> None:
    """A line for each cluster: its size, its share of all rows, its mean distance."""
    columns = ["cluster", "size", "share", "mean distance"]
    rows = [
        [str(j), f"{size:,}", f"{100 * size / n_rows:.1f}%", plain(distances[j])]
        for j, size in enumerate(sizes)
    ]
    if left_out is not None:
        columns.append("left out")
        rows = [[*row, f"{count:,}"] for row, count in zip(rows, left_out, strict=True)]
    print_table(columns, rows)


def print_files(outputs: "FitOutputs") -> None:
    """The folder and the files in it."""
    names = ", ".join(outputs.names)
    stdout.print(f"\nin {outputs.folder}: {names}", markup=False, soft_wrap=True)


def _three_digits(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3f}"
