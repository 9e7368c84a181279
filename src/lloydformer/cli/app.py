"""`lloydformer`: the commands, and how every one of them ends."""

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import typer

from lloydformer import __version__

COMMANDS = (
    "bench", "demo", "doctor", "fit", "predict", "recipes", "reproduce", "train", "verify",
)  # fmt: skip
"""Each is the function of its name in the module of its name."""

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for a wrong command, option or value."""

REPAIRS = {
    errno.ENOSPC: "free some space, or write somewhere else with --output",
    errno.EDQUOT: "free some space, or write somewhere else with --output",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EACCES: "check the permissions, or name another path",
    errno.EROFS: "write somewhere else with --output",
}


def application(wanted: Sequence[str]) -> typer.Typer:
    """The commands; only those that are wanted are imported."""
    app = typer.Typer(
        name="lloydformer",
        help="Clustering algorithms as transformers with hand-set weights.",
        add_completion=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    for name in wanted:
        app.command()(getattr(import_module(f"lloydformer.cli.{name}"), name))
    return app


def _root() -> None:
    pass


def main() -> None:
    """Bad input: one line and status 2. Never a traceback.

    Ctrl-C ends with status 130; the command itself says what is done so far.
    """
    gc.freeze()  # else collections go through all of torch: half a second, most of it at the end
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (it was closed: `>&-`)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # signs that a terminal's code lacks
    if sys.argv[1:] == ["--version"]:
        print(__version__)
        return
    wanted = [name for name in sys.argv[1:2] if name in COMMANDS] or COMMANDS
    try:
        status = application(wanted)(sys.argv[1:] or ["--help"], standalone_mode=False)
    except UsageError as error:
        message = getattr(error, "format_message", error.__str__)().rstrip(".")
        status = _complain(f"{message}; see lloydformer --help")
    except OSError as error:
        status = _complain(_words(error))
    except ValueError as error:
        status = _complain(str(error))
    except KeyboardInterrupt:
        status = 130
    _leave(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(f"lloydformer: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _words(error: OSError) -> str:
    """Where, what, and what to do."""
    where = f": {error.filename!r}" if error.filename else ""
    repair = REPAIRS.get(error.errno or 0)
    return f"{error.strerror or error}{where}" + (f"; {repair}" if repair else "")


def _leave(status: int) -> None:
    """A reader that went away (`| head`) is no error of ours; a full disk is one."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            status = _complain(f"standard output: {_words(error)}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
