"""`lloydformer`: the commands, error messages and exit status."""

import errno
import gc
import io
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from lloydformer import __version__

# Each names a module of this package and the function in it.
COMMANDS = (
    *("bench", "check", "demo", "doctor", "explore", "fit", "interp", "predict", "recipes"),
    *("reproduce", "train", "verify"),
)
_FORMAT = warnings.formatwarning  # Python's
_SHOWN: set[str] = set()  # warnings of old names
# Raised by typer for a wrong command, option or value. It is click's, or that of a copy of click
# inside of typer, so it is not imported by name.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

REPAIRS = {
    errno.ENOSPC: "free some space, or write somewhere else with --output",
    errno.EDQUOT: "free some space, or write somewhere else with --output",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EACCES: "check the permissions, or pass another path",
    errno.EROFS: "write somewhere else with --output",
}


def application(wanted: Sequence[str]) -> typer.Typer:
    """Return the typer application; imports only the commands in `wanted`."""
    app = typer.Typer(
        name="lloydformer",
        help="Cluster the rows of files, and look into transformers that run the same algorithms.",
        rich_markup_mode=None,  # help has words in brackets, which are not marks
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def print_version(wanted: bool) -> None:
        if wanted:
            print(__version__)
            raise typer.Exit

    @app.callback()
    def accept_version(
        version: Annotated[
            bool,
            typer.Option(
                "--version",
                help="Print the version and exit.",
                is_eager=True,
                callback=print_version,
            ),
        ] = False,
    ) -> None:
        """Declare the options before a command; the callback of --version does its work."""

    # `lloydformer fit` must not wait for the imports of the other commands.
    for name in wanted:
        app.command()(getattr(import_module(f"lloydformer.app.cli.{name}"), name))
    return app


def main() -> None:
    """Run the command of `sys.argv`; bad input prints one line and exits with status 2.

    Ctrl-C exits with status 130; the command itself prints what is done so far.
    """
    # Imports create half a million objects that stay. Visiting them again and again takes a fifth
    # of a short command; cycles are freed as before, a little later.
    gc.set_threshold(100_000, 20, 20)
    # A stream that the shell has closed (`>&-`) is None.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that the encoding lacks
    # A word that has a new one is a line, without the file and the line of Python.
    warnings.formatwarning = _format_warning
    if sys.argv[1:] == ["--version"]:  # no command is imported
        print(__version__)
        return
    wanted = [name for name in sys.argv[1:2] if name in COMMANDS] or COMMANDS
    try:
        # Not standalone: typer would print errors in several lines, and exit by itself.
        status = application(wanted)(
            sys.argv[1:] or ["--help"], prog_name="lloydformer", standalone_mode=False
        )
    except UsageError as error:
        message = getattr(error, "format_message", error.__str__)().rstrip(".")
        command = f"{wanted[0]} " if len(wanted) == 1 else ""
        status = _print_error(f"{message}; see lloydformer {command}--help")
    except OSError as error:
        status = _print_error(_describe(error))
    except ValueError as error:
        status = _print_error(str(error))
    except (MemoryError, RuntimeError) as error:
        # torch has no exception of its own for memory that cannot be allocated.
        signs = ("can't allocate memory", "Storage size calculation overflowed")
        if not isinstance(error, MemoryError) and not any(sign in str(error) for sign in signs):
            raise
        words = " ".join(str(error).split())[:200]  # torch may add a backtrace
        status = _print_error(f"not enough memory ({words}); use smaller data or numbers")
    except KeyboardInterrupt:
        status = 130
    _flush_and_exit(status if isinstance(status, int) else 0)


def _print_error(message: str) -> int:
    # One line, whatever a library has put into its message: scripts read it by line.
    print(f"lloydformer: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _format_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    if category is not FutureWarning:
        return _FORMAT(message, category, filename, lineno, line)
    # Each message once: jobs that record warnings make Python forget those that it has shown.
    said = "" if str(message) in _SHOWN else f"lloydformer: {message}\n"
    _SHOWN.add(str(message))
    return said


def _describe(error: OSError) -> str:
    """Return the error, the file, and what to do."""
    where = f": {error.filename!r}" if error.filename else ""
    repair = REPAIRS.get(error.errno or 0)
    return f"{error.strerror or error}{where}" + (f"; {repair}" if repair else "")


def _flush_and_exit(status: int) -> None:
    """Exit after a flush: a closed pipe (`| head`) is not an error, but a full disk is."""
    gc.freeze()  # else garbage collection at exit visits all of torch: half a second
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            status = _print_error(f"standard output: {_describe(error)}")
        # Python flushes once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
