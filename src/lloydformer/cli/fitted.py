"""What `fit` and `predict` say on the terminal, while they work and after."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lloydformer.cli.terminal import print_table, progress, stderr, stdout, working
from lloydformer.data.blocks import TensorBlocks
from lloydformer.estimators.source import NoDirectionError
from lloydformer.jobs.fit.found import Found
from lloydformer.jobs.fit.outputs import Outputs
from lloydformer.jobs.fit.request import Request
from lloydformer.jobs.fit.runs import Runs
from lloydformer.jobs.fit.summary import points_per_second
from lloydformer.solving.progress import ProgressBar
from lloydformer.solving.solve import Interrupted


def split(columns: str | None) -> tuple[str, ...] | None:
    """Names between commas."""
    return None if columns is None else tuple(name.strip() for name in columns.split(","))


def fitted(runs: Runs, request: Request) -> Found:
    """The data read and clustered."""
    with working("reading"):
        blocks = request.opened()
    with about(request.data):
        return _watched(runs, blocks, request.numbers)


@contextmanager
def about(data: str) -> Iterator[None]:
    """What an estimator says of X is said of the file, whose rows are counted from 1."""
    try:
        yield
    except NoDirectionError as error:
        raise ValueError(
            f"{data}: found only zeros in row {error.row + 1}, counted from 1, which has no "
            "direction; remove such rows, or compare no directions"
        ) from None
    except ValueError as error:
        raise ValueError(f"{data}: {str(error).removeprefix('X: ')}") from None


def _watched(runs: Runs, blocks: TensorBlocks, numbers: Sequence[int]) -> Found:
    """With a bar on standard error where that is a terminal."""
    if len(numbers) > 1:
        with progress("fitting", len(numbers)) as bar:
            return runs.over(blocks, numbers, after=lambda run: bar.advance(f"k {run.k} done"))
    if not stderr.is_terminal:
        return runs.over(blocks, numbers)
    with ProgressBar() as callback:
        return runs.over(blocks, numbers, callback)


@contextmanager
def stopping(runs: Runs | None = None) -> Iterator[None]:
    """Ctrl-C: what is done so far, in one line."""
    try:
        yield
    except KeyboardInterrupt as stop:
        stderr.print(f"stopped: {_so_far(runs, stop)}; no file was written", soft_wrap=True)
        raise


def _so_far(runs: Runs | None, stop: KeyboardInterrupt) -> str:
    if runs is None:
        return "before all rows were labelled"
    if runs.done:
        return _best_of(runs)
    result = stop.result if isinstance(stop, Interrupted) else None
    if result is None:
        return "before the first iteration was done"
    return (
        f"objective {result.inertia:.6g} after {result.n_iter} iterations "
        f"(--max-iter {result.n_iter} ends there)"
    )


def _best_of(runs: Runs) -> str:
    best = max(runs.done, key=lambda run: run.score)
    if len(runs.done) == 1:
        return f"k {best.k} is done, with silhouette {_three(best.silhouette)}"
    return (
        f"k {runs.done[0].k} to {runs.done[-1].k} are done, the best silhouette is "
        f"{_three(best.silhouette)} with k {best.k}"
    )


def print_runs(runs: Runs, found: Found) -> None:
    """The numbers of clusters that were tried, where there are several."""
    if len(runs.done) < 2:
        return
    rows = [
        [str(run.k), f"{run.objective:.6g}", _three(run.silhouette), str(run.n_iter),
         f"{run.seconds:.2f}"]
        for run in runs.done
    ]  # fmt: skip
    print_table(["k", "objective", "silhouette", "iterations", "seconds"], rows)
    stdout.print(f"\nk {found.n_clusters} has the best silhouette, and was written.\n")


def print_found(found: Found, notes: Sequence[str]) -> None:
    """Each cluster in a line, then the fit in a few."""
    print_clusters(found.sizes, found.mean_distances, found.blocks.n_rows, found.left_out)
    model = found.model
    stdout.print(
        f"\nobjective {model.inertia_:.6g}, silhouette {_three(found.silhouette)} "
        f"(sample of {len(found.sampled[0]):,} rows)"
    )
    most = ", the most allowed" if found.ran_out else ""
    stdout.print(
        f"{model.n_iter_} iterations{most}, {found.seconds:.2f} s, "
        f"{float(f'{points_per_second(found):.3g}'):,.0f} points/s"
    )
    for note in notes:
        stderr.print(f"note: {note}", markup=False, soft_wrap=True)


def print_clusters(
    sizes: Sequence[int],
    distances: Sequence[float],
    n_rows: int,
    left_out: Sequence[int] | None = None,
) -> None:
    """A line for each cluster: its size, its share of all rows, the mean distance in it."""
    columns = ["cluster", "size", "share", "mean distance"]
    rows = [
        [str(j), f"{size:,}", f"{100 * size / n_rows:.1f}%", f"{distances[j]:.4g}"]
        for j, size in enumerate(sizes)
    ]
    if left_out is not None:
        columns.append("left out")
        rows = [[*row, f"{count:,}"] for row, count in zip(rows, left_out, strict=True)]
    print_table(columns, rows)


def print_files(outputs: Outputs) -> None:
    """Where everything is."""
    names = ", ".join(outputs.names)
    stdout.print(f"\nin {outputs.folder}: {names}", markup=False, soft_wrap=True)


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
