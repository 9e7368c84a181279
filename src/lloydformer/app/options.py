"""Options of commands: those that commands share, and dataclasses whose fields become options."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from lloydformer.app.jobs.text_values import LARGEST

Settings = TypeVar("Settings")
Returned = TypeVar("Returned")

# The largest seed that NumPy's RandomState accepts.
LARGEST_SEED = 2**32 - 1


def integer(*names: str, minimum: int = 1, maximum: int = LARGEST, **typer_options: Any) -> Any:
    """Return a typer option for an integer from `minimum` to `maximum`.

    Parameters
    ----------
    *names : str
        Names of the option, such as "-k"; by default typer derives one from the parameter.
    minimum, maximum : int
        The limits. A value outside of them ends the command with an error.
    **typer_options
        Other parameters of `typer.Option`.
    """

    # Not typer's `max`: its message does not name the value, and there is none for 64 bits.
    def check(value: int | None) -> int | None:
        if value is not None and value > maximum:
            raise typer.BadParameter(f"found {value}; pass at most {maximum}")
        return value

    return typer.Option(*names, min=minimum, callback=check, **typer_options)


def seed_option(help: str) -> Any:
    """Return a typer option for a seed, from 0 to `LARGEST_SEED`."""
    return integer(minimum=0, maximum=LARGEST_SEED, help=help)


def force_option(help: str) -> Any:
    """Return the typer option `--force`, which allows a command to replace existing files."""
    return typer.Option("--force", help=help)


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def option(default: Any, **typer_options: Any) -> Any:
    """Return a dataclass field that `command_of` turns into an option of a command.

    Parameters
    ----------
    default : Any
        The default value. `dataclasses.MISSING` makes the field a required argument.
    **typer_options
        `help` and other parameters of `typer.Option`, and in addition: `flag`, a short name such
        as "-k"; `minimum` and `maximum`, the limits of an integer; `choices`, the words that help
        and shell completion show. The dataclass checks the choices itself: its errors say what to
        do.
    """
    return dataclasses.field(default=default, metadata=typer_options)


def _declare(
    name: str,
    default: Any,
    flag: str | None = None,
    choices: Sequence[str] = (),
    **typer_options: Any,
) -> Any:
    """Return the typer declaration of a field; the parameters are those of `option`."""
    if default is dataclasses.MISSING:
        return typer.Argument(**typer_options)
    if choices:
        typer_options.setdefault("metavar", "|".join(choices))
        # typer finds the parameter by its name.
        typer_options["autocompletion"] = lambda incomplete: [
            word for word in choices if word.startswith(incomplete)
        ]
    # With an explicit name, as typer would add --no-NAME to a switch that is off by default.
    names = [flag] if flag else []
    if flag or default is False:
        names.append(f"--{name.replace('_', '-')}")
    return (integer if "minimum" in typer_options else typer.Option)(*names, **typer_options)


def command_of(
    settings: type[Settings],
) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Return a decorator for a command whose options are the fields of a dataclass.

    The fields created by `option` become options of the command, those of a base class last. The
    decorated function receives an instance of the dataclass as its first argument; its other
    parameters are options of typer as usual.
    """
    hints = get_type_hints(settings)
    inherited = getattr(settings.__base__, "__annotations__", {})
    # mypy: a type variable is no dataclass.
    declared = dataclasses.fields(settings)  # type: ignore[arg-type]
    parameters = [
        Parameter(
            each.name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if each.default is dataclasses.MISSING else each.default,
            annotation=Annotated[
                hints[each.name], _declare(each.name, each.default, **each.metadata)
            ],
        )
        for each in sorted(declared, key=lambda each: each.name in inherited)
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
