"""`lloydformer`: the commands, error messages and exit status."""

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from lloydformer import __version__

COMMANDS = (
    "bench", "check", "demo", "doctor", "explore", "fit", "predict", "recipes", "reproduce",
    "train", "verify",
)  # fmt: skip
"""Each names a module of this package and the function in it."""

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""Raised by typer for a wrong command, option or value."""

REPAIRS = {
    errno.ENOSPC: "free some space, or write somewhere else with --output",
    errno.EDQUOT: "free some space, or write somewhere else with --output",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EACCES: "check the permissions, or pass another path",
    errno.EROFS: "write somewhere else with --output",
}


def application(wanted: Sequence[str]) -> typer.Typer:
    """The typer application; imports only the commands in `wanted`."""
    app = typer.Typer(
        name="lloydformer",
        help="Clustering algorithms as transformers with hand-set weights.",
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name in wanted:
        app.command()(getattr(import_module(f"lloydformer.cli.{name}"), name))
    return app


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(__version__)
        raise typer.Exit
    return wanted


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True,
                     callback=_print_version),
    ] = False,
) -> None:  # fmt: skip
    pass


def main() -> None:
    """Run the command of `sys.argv`; bad input prints one line and exits with status 2.

    Ctrl-C exits with status 130; the command itself prints what is done so far.
    """
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (closed by `>&-`)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the encoding lacks
    if sys.argv[1:] == ["--version"]:  # no command is imported
        print(__version__)
        return
    wanted = [name for name in sys.argv[1:2] if name in COMMANDS] or COMMANDS
    try:
        status = application(wanted)(
            sys.argv[1:] or ["--help"], prog_name="lloydformer", standalone_mode=False
        )
    except UsageError as error:
        message = getattr(error, "format_message", error.__str__)().rstrip(".")
        command = f"{wanted[0]} " if len(wanted) == 1 else ""
        status = _complain(f"{message}; see lloydformer {command}--help")
    except OSError as error:
        status = _complain(_words(error))
    except ValueError as error:
        status = _complain(str(error))
    except (MemoryError, RuntimeError) as error:
        if not _is_about_memory(error):
            raise
        words = " ".join(str(error).split())[:200]
        status = _complain(f"not enough memory ({words}); use smaller data or numbers")
    except KeyboardInterrupt:
        status = 130
    _leave(status if isinstance(status, int) else 0)


def _is_about_memory(error: BaseException) -> bool:
    """Whether NumPy or torch could not allocate an array; torch has no exception of its own."""
    signs = ("can't allocate memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in signs)


def _complain(message: str) -> int:
    print(f"lloydformer: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _words(error: OSError) -> str:
    """The error, the file, and what to do."""
    where = f": {error.filename!r}" if error.filename else ""
    repair = REPAIRS.get(error.errno or 0)
    return f"{error.strerror or error}{where}" + (f"; {repair}" if repair else "")


def _leave(status: int) -> None:
    """Flush and exit. A closed pipe (`| head`) is not an error; a full disk is."""
    gc.freeze()  # else garbage collection at exit visits all of torch: half a second
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            status = _complain(f"standard output: {_words(error)}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
