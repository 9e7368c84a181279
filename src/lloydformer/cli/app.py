"""`lloydformer`: the commands, and how every one of them ends."""

import io
import os
import sys

import typer

from lloydformer import __version__
from lloydformer.cli import demo, doctor, recipes, verify

app = typer.Typer(
    name="lloydformer",
    help="Clustering algorithms as transformers with hand-set weights.",
    add_completion=False,
    rich_markup_mode=None,
)
for command in (demo.demo, doctor.doctor, recipes.recipes, verify.verify):
    app.command()(command)

UsageError: type[Exception] = typer.BadParameter.__bases__[0]
"""What typer raises for a wrong command, option or value."""


@app.callback()
def _root() -> None:
    pass


def main() -> None:
    """Bad input: one line and status 2. Never a traceback.

    Ctrl-C ends with status 130; the command itself says what is done so far.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # signs that a terminal's code lacks
    if sys.argv[1:] == ["--version"]:
        print(__version__)
        return
    try:
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except UsageError as error:
        message = getattr(error, "format_message", error.__str__)().rstrip(".")
        status = _complain(f"{message}; see lloydformer --help")
    except (ValueError, OSError) as error:
        status = _complain(str(error))
    except KeyboardInterrupt:
        status = 130
    _leave(status if isinstance(status, int) else 0)


def _complain(message: str) -> int:
    print(f"lloydformer: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _leave(status: int) -> None:
    """A reader that went away (`| head`) is no error of ours."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)
