"""`lloydformer bench`: print the times and objectives of this package and of others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.cli.options import LARGEST_SEED, integer
from lloydformer.cli.terminal import print_json, print_table, progress, stderr, stdout
from lloydformer.jobs.bench.question_names import QUESTION_NAMES, check_question

if TYPE_CHECKING:
    from lloydformer.jobs.bench.result import Result
    from lloydformer.jobs.bench.run import BenchJob

COLUMNS = ("data", "contender", "median", "fastest", "slowest", "iterations", "objective", "times")


def bench(
    question: Annotated[
        str, typer.Option(metavar="NAME", help=f"What to measure: {', '.join(QUESTION_NAMES)}.")
    ] = "iteration",
    threads: Annotated[
        int | None,
        integer(most=1024, help="Threads of each contender.  [default: all cores]"),
    ] = None,
    repeats: Annotated[
        int, integer(least=2, help="Samples of each contender, taken in turns.")
    ] = 5,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help="Only data whose name has this part; repeatable."),
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="PEER", help="Leave a peer out; repeatable.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="LLOYDFORMER_DATA", help="Folder of .npz sets, for convergence."),
    ] = None,
    seed: Annotated[
        int, integer(least=0, most=LARGEST_SEED, help="Seed of the points and the starts.")
    ] = 0,
    result: Annotated[
        Path | None, typer.Option(help="Show a result from a file; measure nothing.")
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="A .json file, or a chart: .png, .svg; repeatable."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time fits of this package and of others.

    The others are scikit-learn, and scikit-learn-intelex and faiss if they are installed. All
    contenders have the same data, start, iterations and threads, and take samples in turns.
    The objective is computed in float64 from the centers that each returns. All sizes of a
    question take some minutes; --only chooses some.
    """
    check_question(question)
    from lloydformer.engines.thread_pool import allowed_threads
    from lloydformer.jobs.bench.files import check_file, write_file
    from lloydformer.jobs.bench.result import load
    from lloydformer.jobs.bench.run import BenchJob

    for path in output or []:
        check_file(path, force)
    if result is not None:
        found = load(result)
    else:
        threads = threads or allowed_threads()
        found = _measured(
            BenchJob(question, only or [], without or [], data, threads, repeats, seed)
        )
    for path in output or []:
        write_file(found, path)
    if json:
        return print_json(found)
    return _print(found)


def _measured(job: "BenchJob") -> "Result":
    """Measure with a progress bar; on Ctrl-C, print how many samples were taken."""
    done: list[str] = []
    total, skipped = job.n_samples, job.skipped
    if skipped:
        stderr.print(f"skipped, not in --data: {', '.join(skipped)}", soft_wrap=True)
    with progress(job.question_name, total) as bar:

        def after(sample: str) -> None:
            done.append(sample)
            bar.advance(sample)

        try:
            return job.run(after)
        except KeyboardInterrupt:
            stderr.print(f"stopped: {len(done)} of {total} samples were taken, none is kept")
            raise


def _print(found: "Result") -> None:
    from lloydformer.jobs.bench.result import excess, seconds

    cells = [
        [case, name, *(seconds(m[what]) for what in ("median", "fastest", "slowest")),
         f"{m['n_iter']:.4g}", f"+{excess(row, name):.1e}", f"{m['times']:.2f}"]
        for case, row in found["rows"].items()
        for name, m in row["contenders"].items()
    ]  # fmt: skip
    settings, versions = found["settings"], found["provenance"]["versions"]
    print_table(COLUMNS, cells)
    stdout.print(
        f"\n{found['asks']}; seconds per {found['per']}, {settings['threads']} threads, "
        f"{settings['repeats']} samples. objective: relative distance to the lowest of its data. "
        "times: median over that of the first contender.",
        soft_wrap=True,
    )
    stdout.print(", ".join(f"{p} {v}" for p, v in versions.items()), soft_wrap=True)
    for package in found["missing"]:
        stdout.print(f"not installed, skipped: {package} (pip install {package})")
    for note in found["notes"]:
        stdout.print(note)
    if found["ahead"] is not None:
        stdout.print(f"the best peer takes {found['ahead']:.2f} times as long as lloydformer")
