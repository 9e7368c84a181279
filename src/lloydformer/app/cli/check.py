"""`lloydformer check`: a recipe against a plain algorithm, with the first difference."""

from typing import Annotated

import typer

from lloydformer.app.cli.terminal import print_json, progress, stdout, working
from lloydformer.app.jobs.text_values import parse_names
from lloydformer.app.options import Json, integer, seed_option


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
    seed: Annotated[int, seed_option(help="Seed of the random problems.")] = 0,
    json: Json = False,
) -> int:
    """Compare a recipe with a plain algorithm.

    Each layer of the circuit is compared with an iteration of the algorithm on random problems
    (with ties, equal points, outliers, empty clusters), then the run over all layers. Prints the
    first difference, and a small problem that shows it. Status 1 if they differ. Takes a few
    seconds. Python files and modules that RECIPE or WHERE name are executed.
    """
    import torch

    from lloydformer.app.jobs.check import load_algorithm, load_recipe
    from lloydformer.paper.verify.checking.check import check as compare
    from lloydformer.paper.verify.trials import families_for

    plain = None if algorithm is None else load_algorithm(algorithm)
    # Files and --dtype are checked before the bar is shown; `compare` checks the rest before it
    # compares.
    checked, named = load_recipe(recipe), parse_names(families)
    if dtype not in ("float64", "float32"):
        raise ValueError(f"--dtype: found {dtype!r}; pass float64 or float32")
    total = problems * len(set(named or families_for(checked)))

    def describe_stop(done: int) -> str:
        return f"stopped: {done} of {total} problems were compared"

    with progress("check", total, describe_stop) as bar:
        result = compare(
            checked,
            plain,
            n_problems=problems,
            n_layers=layers,
            seed=seed,
            dtype=getattr(torch, dtype),
            families=named,
            callback=lambda done, total: bar.reach(done, "check"),
        )
    # `repr` and `as_dict` shrink the problem of the first difference: up to a few seconds.
    with working("looking for a small problem"):
        text, values = repr(result), result.as_dict()
    if json:
        print_json({"seed": seed, "layers": layers, "dtype": dtype, **values})
    else:
        stdout.print(text, soft_wrap=True)
    return 0 if result.agrees else 1
