"""`lloydformer bench`: how long ours takes beside others, and what each reaches."""

import json as codec
from collections.abc import Sequence
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer

from lloydformer.cli.terminal import (
    print_json,
    print_table,
    progress,
    refuse_to_overwrite,
    stderr,
    stdout,
)
from lloydformer.engines.native.engine import allowed_threads
from lloydformer.jobs.bench.problem import Case, Contender
from lloydformer.jobs.bench.questions import CONVERGING, QUESTIONS
from lloydformer.jobs.bench.result import Result, ask, excess, load, seconds
from lloydformer.plots.axes import require_matplotlib
from lloydformer.storage.atomic import replacing, write_whole


class Asked(StrEnum):
    """The names of the questions."""

    ITERATION = "iteration"
    CONVERGENCE = "convergence"
    SMALL = "small"
    ALGORITHMS = "algorithms"
    GROWTH = "growth"


COLUMNS = ("data", "contender", "median", "fastest", "slowest", "iterations", "objective", "times")
PICTURES = (".png", ".svg", ".pdf")


def bench(
    question: Annotated[Asked, typer.Option(help="What is measured.")] = Asked.ITERATION,
    threads: Annotated[
        int | None, typer.Option(min=1, help="For each contender; by default all.")
    ] = None,
    repeats: Annotated[int, typer.Option(min=2, help="Samples of each, taken in turns.")] = 5,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only data of such a name; repeatable.")
    ] = None,
    without: Annotated[
        list[str] | None, typer.Option(metavar="PEER", help="Leave a peer out; repeatable.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(envvar="LLOYDFORMER_DATA", help="Folder of .npz sets, for convergence."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Draws the points and the starts.")] = 0,
    result: Annotated[
        Path | None, typer.Option(help="Show a result that was written before; measure nothing.")
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="A .json file, or a chart: .png, .svg; repeatable."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time fits beside scikit-learn, scikit-learn-intelex and faiss, where they are installed.

    The same data, start, iterations and threads; samples are taken in turns. Beside each time
    stands the objective that was reached, computed in float64 from the centers returned. All sizes
    of a question take some minutes; --only has fewer.
    """
    for path in output or []:
        _check(path, force)
    if result is not None:
        found = load(result)
    else:
        settings = {"threads": threads or allowed_threads(), "repeats": repeats, "seed": seed}
        found = _measured(str(question), only or [], without or [], data, settings)
    for path in output or []:
        _write(found, path)
    if json:
        return print_json(found)
    return _print(found)


def _measured(
    name: str, only: Sequence[str], without: Sequence[str], data: Path | None,
    settings: dict[str, Any],
) -> Result:  # fmt: skip
    question = QUESTIONS[name]
    contenders = _kept(question.contenders(), without)
    cases = _chosen(question.cases(data, settings["seed"]), only)
    if name == "convergence":
        _say_what_is_skipped(data)
    rows: list[str] = []
    with progress(name, len(cases) * len(contenders) * settings["repeats"]) as bar:

        def done(what: str) -> None:
            rows.append(what)
            bar.advance(what)

        try:
            return ask(name, question, cases, contenders, settings, done)
        except KeyboardInterrupt:
            stderr.print(f"stopped: {len(rows)} samples of {len(cases)} rows were taken, none kept")
            raise


def _kept(contenders: list[Contender], without: Sequence[str]) -> list[Contender]:
    names = [c.name for c in contenders[1:]]
    for name in without:
        if name not in names:
            raise ValueError(f"--without: found {name!r}; there are {'; '.join(names)}")
    return [c for c in contenders if c.name not in without]


def _chosen(cases: list[Case], only: Sequence[str]) -> list[Case]:
    """Those with a part of their name as asked for: "k 10" is not in "k 100"."""
    chosen = [c for c in cases if not only or any(f"{word}," in f"{c.name}," for word in only)]
    if not chosen:
        names = "; ".join(c.name for c in cases)
        raise ValueError(f"--only: found {', '.join(only)}, which is in no name; there are {names}")
    return chosen


def _say_what_is_skipped(data: Path | None) -> None:
    if data is not None and not data.is_dir():
        raise ValueError(f"--data: found {data}, which is no folder; pass one of .npz sets")
    lost = [s for s in CONVERGING.values() if data is None or not (data / f"{s}.npz").exists()]
    if lost:
        stderr.print(f"skipped, not in --data: {', '.join(lost)}", soft_wrap=True)


def _check(path: Path, force: bool) -> None:
    if path.suffix not in (".json", *PICTURES):
        kinds = ", ".join((".json", *PICTURES))
        raise ValueError(f"--output: found {path}; pass a name that ends with one of {kinds}")
    if path.suffix in PICTURES:
        try:
            require_matplotlib()
        except ImportError as error:
            raise ValueError(f"--output: found {path}, but {error}") from None
    refuse_to_overwrite(path, force)


def _write(found: Result, path: Path) -> None:
    if path.suffix == ".json":
        write_whole(path, codec.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return
    from matplotlib.figure import Figure

    from lloydformer.plots.times import times

    size = (8.5, 2.2 + 0.6 * len(found["rows"]))
    figure, picture = Figure(size, layout="constrained"), BytesIO()
    times(found, figure.subplots())
    figure.savefig(picture, format=path.suffix[1:], dpi=150)
    with replacing(path) as file:
        file.write(picture.getvalue())


def _print(found: Result) -> None:
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
        f"{settings['repeats']} samples. objective: above the lowest, in parts of it.",
        soft_wrap=True,
    )
    stdout.print(", ".join(f"{p} {v}" for p, v in versions.items()), soft_wrap=True)
    for package in found["missing"]:
        stdout.print(f"not installed, skipped: {package} (pip install {package})")
    for note in found["notes"]:
        stdout.print(note)
    if found["ahead"] is not None:
        stdout.print(f"the best peer takes {found['ahead']:.2f} times as long as lloydformer")
