"""`lloydformer bench`: print the times and objectives of this package and of others."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lloydformer.app.cli.terminal import print_json, print_table, progress, stderr, stdout
from lloydformer.app.jobs.bench import QUESTION_NAMES, check_question
from lloydformer.app.options import Json, force_option, integer, seed_option

COLUMNS = ("data", "contender", "median", "fastest", "slowest", "iterations", "objective", "times")


def bench(
    question: Annotated[
        str, typer.Option(metavar="NAME", help=f"What to measure: {', '.join(QUESTION_NAMES)}.")
    ] = "iteration",
    threads: Annotated[
        int | None, integer(maximum=1024, help="Threads of each contender.  [default: all cores]")
    ] = None,
    repeats: Annotated[
        int, integer(minimum=2, help="Samples of each contender, taken in turns.")
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
        typer.Option(
            envvar="LLOYDFORMER_DATA", help="Folder of .npz sets, for convergence and tails."
        ),
    ] = None,
    seed: Annotated[int, seed_option(help="Seed of the points and the starts.")] = 0,
    result: Annotated[
        Path | None, typer.Option(help="Show a result from a file; measure nothing.")
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="A .json file, or a chart: .png, .svg; repeatable."),
    ] = None,
    force: Annotated[bool, force_option(help="Replace files that exist.")] = False,
    json: Json = False,
) -> None:
    """Time fits of this package and of others.

    The others are scikit-learn, and scikit-learn-intelex and faiss if they are installed. All
    contenders have the same data, start, iterations and threads, and take samples in turns.
    The objective is computed in float64 from the centers that each returns. All sizes of a
    question take some minutes; --only chooses some.
    """
    check_question(question)
    from lloydformer.app.jobs.bench.questions import BenchJob
    from lloydformer.app.jobs.bench.result import check_output, load_result, write_output
    from lloydformer.engines.thread_pool import allowed_threads

    # Before anything is measured: minutes of samples must not end with a wrong name.
    for path in output or []:
        check_output(path, force)
    if result is not None:
        answer = load_result(result)
    else:
        threads = threads or allowed_threads()
        job = BenchJob(question, only or [], without or [], data, threads, repeats, seed)
        # Both raise errors of wrong options, before the bar is shown.
        total, skipped = job.n_samples, job.skipped
        if skipped:
            stderr.print(f"skipped, not in --data: {', '.join(skipped)}", soft_wrap=True)

        def describe_stop(done: int) -> str:
            return f"stopped: {done} of {total} samples were taken, none is kept"

        with progress(question, total, describe_stop) as bar:
            answer = job.run(bar.step)
    for path in output or []:
        write_output(answer, path)
    if json:
        return print_json(answer)
    return _print(answer)


def _print(answer: dict[str, Any]) -> None:
    """Print the table of a result, and the lines that explain it."""
    from lloydformer.app.jobs.bench.result import format_seconds, relative_excess

    cells = []
    for case, row in answer["rows"].items():
        for name, m in row["contenders"].items():
            times = [format_seconds(m[what]) for what in ("median", "fastest", "slowest")]
            excess = f"+{relative_excess(row, name):.1e}"
            cells.append([case, name, *times, f"{m['n_iter']:.4g}", excess, f"{m['times']:.2f}"])
    settings, versions = answer["settings"], answer["provenance"]["versions"]
    print_table(COLUMNS, cells)
    stdout.print(
        f"\n{answer['asks']}; seconds per {answer['per']}, {settings['threads']} threads, "
        f"{settings['repeats']} samples. objective: relative distance to the lowest of its data. "
        "times: median over that of the first contender.",
        soft_wrap=True,
    )
    stdout.print(", ".join(f"{p} {v}" for p, v in versions.items()), soft_wrap=True)
    for package in answer["missing"]:
        stdout.print(f"not installed, skipped: {package} (pip install {package})")
    for note in answer["notes"]:
        stdout.print(note)
    if answer["ahead"] is not None:
        stdout.print(f"the best peer takes {answer['ahead']:.2f} times as long as lloydformer")
