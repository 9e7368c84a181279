"""Options that commands share, and settings: dataclasses whose fields are options of a command."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, field, fields
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from lloydformer.app.jobs.text_values import LARGEST

Settings = TypeVar("Settings")
Returned = TypeVar("Returned")

# NumPy's random states take no larger seeds.
LARGEST_SEED = 2**32 - 1


def integer(*names: str, least: int = 1, most: int = LARGEST, **how: Any) -> Any:
    """Return a typer option for an integer; a larger one than `most` ends the command."""

    # Not typer's `max`: its message does not name the value, and there is none for 64 bits.
    def check(value: int | None) -> int | None:
        if value is not None and value > most:
            raise typer.BadParameter(f"found {value}; pass at most {most}")
        return value

    return typer.Option(*names, min=least, callback=check, **how)


def seed_option(help: str) -> Any:
    """Return a typer option for a seed."""
    return integer(least=0, most=LARGEST_SEED, help=help)


def force_option(help: str) -> Any:
    """Return a typer option that allows a command to replace what exists."""
    return typer.Option("--force", help=help)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def option(default: Any, **how: Any) -> Any:
    """Return a field of settings that is an option of a command.

    Parameters
    ----------
    default : Any
        The default; `MISSING` makes the field an argument of the command, which must be given.
    **how
        `help` and other parameters of `typer.Option`; `flag`, a short name as -k; `least` and
        `most`, the limits of an integer; `among`, words that shells complete. They are checked by
        the settings, whose errors say what to do.
    """
    return field(default=default, metadata=how)


def _declare(
    name: str, default: Any, flag: str | None = None, among: Sequence[str] = (), **how: Any
) -> Any:
    """Return the declaration of a field for typer."""
    if default is MISSING:
        return typer.Argument(**how)
    if among:
        how.setdefault("metavar", "|".join(among))
        how["autocompletion"] = lambda incomplete: [w for w in among if w.startswith(incomplete)]
    # typer would add --no-NAME to a switch that is off by default.
    names = [flag] if flag else []
    if flag or default is False:
        names.append(f"--{name.replace('_', '-')}")
    return (integer if "least" in how else typer.Option)(*names, **how)


def command_of(
    settings: type[Settings],
) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Return a decorator for a command that takes a dataclass of settings.

    Fields that `option` made become options of the command, those of a base class last. The
    decorated function gets the dataclass; its other parameters are options of typer as usual.
    """
    hints, inherited = get_type_hints(settings), getattr(settings.__base__, "__annotations__", {})
    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is MISSING else each.default,
            annotation=Annotated[
                hints[each.name], _declare(each.name, each.default, **each.metadata)
            ],
        )
        for each in sorted(fields(settings), key=lambda each: each.name in inherited)  # type: ignore[arg-type]  # a type variable is no dataclass
        if "help" in each.metadata  # other fields are set by jobs, not by users
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
