"""`lloydformer recipes`: print the paper's table from the recipes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lloydformer.app.cli.terminal import print_json, print_table, stderr, stdout
from lloydformer.app.options import Json, force_option
from lloydformer.data.storage.atomic_files import atomic_write_text, refuse_to_overwrite

if TYPE_CHECKING:
    from lloydformer.circuits.stages import AnyRecipe

LEGEND = (
    "Enc-CA: how points choose centers. Dec-CA: how centers weigh points. ℓ2 scores\n"
    "by distance, ⟨,⟩ by product; hard max (LSMA), soft-max (SMA), linear (LinA/IdA),\n"
    "norm-max (NMA), sparsemax (SSMA) or Gumbel (GSMA). NLT: a network. *: a variant."
)


def recipes(
    name: Annotated[
        str | None, typer.Argument(help="One recipe: print its row and its equation.")
    ] = None,
    explain: Annotated[
        str, typer.Option(metavar="NAME", help="Print the derivation of a recipe's plan.")
    ] = "",
    diagram: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the recipe's layer: an SVG file.")
    ] = None,
    force: Annotated[bool, force_option(help="Replace the file if it exists.")] = False,
    json: Json = False,
) -> None:
    """Print the table of recipes, or one recipe in detail.

    One recipe is printed with its equation, and with --explain the derivation of its plan.
    --diagram draws its layer: the streams of tokens, and each head with its parts.
    """
    # `recipes lloyd --explain lloyd` is fine, `recipes soft --explain lloyd` is a slip.
    if explain and name and explain != name:
        raise ValueError(f"--explain: found {explain!r} together with {name!r}; name one recipe")
    from lloydformer.circuits import recipes as library

    name = explain or name
    if name is not None and name not in library.NAMED:
        raise ValueError(f"recipe: found {name!r}; pass one of {', '.join(library.NAMED)}")
    chosen = [library.NAMED[one]() for one in ([name] if name else library.NAMED)]
    if diagram:
        if name is None:
            raise ValueError("--diagram: found no recipe; name one, as in: recipes lloyd --diagram")
        if diagram.suffix.lower() != ".svg":
            raise ValueError(f"--diagram: found {str(diagram)!r}; pass a name that ends in .svg")
        refuse_to_overwrite(diagram, force, "--diagram")
        from lloydformer.plots import diagrams

        atomic_write_text(diagram, diagrams.diagram(chosen[0]))
        stderr.print(f"diagram: {diagram}", soft_wrap=True)
    if json:
        rows_by_name = {
            r.name: {**r.row(), "equation": r.equation(), "derivation": _derivation(r)}
            for r in chosen
        }
        return print_json({"label": "tab:comp-alg", "rows": rows_by_name})
    # A file gets all columns; a terminal has no room for them.
    hidden: set[str] = set()
    if stdout.is_terminal:
        hidden = {"Appendix"} if stdout.width >= 110 else {"Appendix", "Enc-SA", "Dec-SA"}
    columns = [c for c in chosen[0].row() if c not in hidden]
    rows = [[r.name, *(r.row()[c] for c in columns)] for r in chosen]
    print_table(["recipe", *columns], rows, fold="Algorithm")
    if stdout.is_terminal:
        stdout.print(f"\n{LEGEND}")
    if "Enc-SA" not in columns:
        stdout.print("A terminal of 110 columns also shows self-attention (Enc-SA, Dec-SA).")
    if name:
        stdout.print(f"\n{chosen[0].equation()}", soft_wrap=True)
    if explain:
        for number, step in enumerate(_derivation(chosen[0]), start=1):
            stdout.print(f"\n{number}. {step}")
    return None


def _derivation(recipe: "AnyRecipe") -> tuple[str, ...]:
    """Return the steps of the derivation, or the reason why there is no plan."""
    from lloydformer.plans.lower import LoweringError, derive

    try:
        return derive(recipe).steps
    except LoweringError as refusal:
        return (str(refusal),)
