"""`lloydformer check`: a recipe against a plain algorithm, with the first difference."""

from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.cli.options import LARGEST_SEED, integer, names_of
from lloydformer.cli.terminal import print_json, progress, stderr, stdout, working

if TYPE_CHECKING:
    from lloydformer.jobs.check import CheckJob
    from lloydformer.verify.checking.result import CheckResult


def check(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A name (lloyd), a .json file, file.py:name or package.module:name.",
        ),
    ],
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="WHERE",
            help="The plain algorithm, file.py:name or package.module:name: a function "
            "step(points, centers), or an object with assign, weigh and place.  "
            "[default: the one that the recipe is named after]",
        ),
    ] = None,
    problems: Annotated[int, integer(help="Problems of each family.")] = 4,
    layers: Annotated[int, integer(help="Layers on each problem.")] = 10,
    families: Annotated[
        str | None, typer.Option(metavar="a,b,c", help="Families of problems.  [default: all]")
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Precision of the circuit: float64 or float32.")
    ] = "float64",
    seed: Annotated[
        int, integer(least=0, most=LARGEST_SEED, help="Seed of the random problems.")
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> int:
    """Compare a recipe with a plain algorithm.

    Each layer of the circuit is compared with an iteration of the algorithm on random problems
    (with ties, equal points, outliers, empty clusters), then the run over all layers. Prints the
    first difference, and a small problem that shows it. Status 1 if they differ. Takes a few
    seconds. RECIPE and WHERE are run as Python code if they name some.
    """
    from lloydformer.jobs.check import CheckJob, load_algorithm, load_recipe

    plain = None if algorithm is None else load_algorithm(algorithm)
    result = _compared(
        CheckJob(load_recipe(recipe), plain, problems, layers, seed, dtype, names_of(families))
    )
    with working("looking for a small problem"):
        text, values = repr(result), result.as_dict()
    if json:
        print_json({"seed": seed, "layers": layers, "dtype": dtype, **values})
    else:
        stdout.print(text, markup=False, soft_wrap=True)
    return 0 if result.agrees else 1


def _compared(job: "CheckJob") -> "CheckResult":
    """Compare with a progress bar; on Ctrl-C, print how many problems are done."""
    finished = 0
    with progress("check", job.total) as bar:

        def after(done: int, total: int) -> None:
            nonlocal finished
            finished = done
            bar.reach(done, "check")

        try:
            return job.run(after)
        except KeyboardInterrupt:
            stderr.print(f"stopped: {finished} of {job.total} problems were compared")
            raise
