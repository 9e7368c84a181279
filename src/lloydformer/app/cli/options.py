"""Options that commands share, and commands whose options are the fields of a dataclass."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from lloydformer.app.jobs.text_values import LARGEST

Settings = TypeVar("Settings")
Returned = TypeVar("Returned")

# NumPy's random states take no larger seeds.
LARGEST_SEED = 2**32 - 1


def integer(*names: str, least: int = 1, most: int = LARGEST, help: str) -> Any:
    """Return a typer option for an integer; a larger one than `most` ends the command."""

    # Not typer's `max`: its message does not name the value, and there is none for 64 bits.
    def check(value: int | None) -> int | None:
        if value is not None and value > most:
            raise typer.BadParameter(f"found {value}; pass at most {most}")
        return value

    return typer.Option(*names, min=least, callback=check, help=help)


def seed_option(help: str) -> Any:
    """Return a typer option for a seed."""
    return integer(least=0, most=LARGEST_SEED, help=help)


def choice(*names: str, among: Sequence[str], help: str, **more: Any) -> Any:
    """Return a typer option for one of some words, which shells complete.

    The words are checked by the jobs, whose errors say what to do.
    """

    def complete(incomplete: str) -> list[str]:
        return [word for word in among if word.startswith(incomplete)]

    return typer.Option(*names, autocompletion=complete, help=help, **more)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

# How a table is written, and the column that names its rows: `fit` and `predict` read tables.
TABLE_OPTIONS: dict[str, Any] = {
    "sep": choice(
        among=("comma", "semicolon", "tab", "bar", "space"),
        metavar="SIGN",
        help="Separator of values.  [default: recognised]",
    ),
    "decimal": choice(
        among=(".", ","), metavar=".|,", help="Decimal point.  [default: recognised]"
    ),
    "encoding": choice(
        among=("utf-8", "cp1252", "latin-1", "utf-16"),
        metavar="NAME",
        help="Encoding of the text.  [default: recognised]",
    ),
    "header": typer.Option(
        "--header/--no-header",
        show_default=False,
        help="Whether the first line has column names.  [default: recognised]",
    ),
    "sheet": typer.Option(metavar="NAME", help="Sheet of an Excel file.  [default: the first]"),
    "id_column": typer.Option(
        metavar="NAME", help="Column that names the rows: not clustered, but copied to the labels."
    ),
}


def command_of(
    settings: type[Settings], options: Mapping[str, Any]
) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Return a decorator for a command that takes a dataclass of settings.

    Each field that has an entry in `options` becomes an option of the command, with the type and
    the default of the field. The decorated function gets the dataclass; its other parameters are
    options of typer as usual.
    """
    hints = get_type_hints(settings)
    parameters = [
        Parameter(
            field.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[hints[field.name], options[field.name]],
        )
        for field in fields(settings)  # type: ignore[arg-type]  # a type variable is no dataclass
        if field.name in options
    ]

    def decorate(run: Callable[..., Returned]) -> Callable[..., Returned]:
        @wraps(run)
        def command(**values: Any) -> Returned:
            given = {each.name: values.pop(each.name) for each in parameters}
            return run(settings(**given), **values)

        own = [
            each.replace(kind=Parameter.KEYWORD_ONLY)
            for each in list(signature(run).parameters.values())[1:]
        ]
        # typer reads types from the annotations, and everything else from the signature.
        command.__signature__ = Signature([*parameters, *own])  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in (*parameters, *own)}
        return command

    return decorate
