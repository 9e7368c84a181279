"""Terminal output that the commands share: tables, JSON and progress bars."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text


class Terminal(Console):
    """A console that prints text as it is, and ignores a closed pipe (`| head`)."""

    def __init__(self, **settings: Any) -> None:
        # rich would colour every number, and take [words] of a file for marks.
        super().__init__(**{"highlight": False, "markup": False, **settings})

    def on_broken_pipe(self) -> None:
        # Python flushes standard output once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


stdout = Terminal()
stderr = Terminal(stderr=True)


def print_json(value: object) -> None:
    """Print one JSON object on standard output."""
    try:
        print(json.dumps(value, indent=2, ensure_ascii=False))
    except BrokenPipeError:
        stdout.on_broken_pipe()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str = "", fold: str = ""
) -> None:
    """Print a table without a frame; only the column `fold` may wrap its text.

    If a terminal is too narrow for the table, each row is printed as a record, one value a line.
    If the output is not a terminal, the table is as wide as needed.
    """
    # rich takes 80 columns where there is no terminal, and would cut the cells of a file.
    console = stdout if stdout.is_terminal else Terminal(width=1000)
    table = Table(
        title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold"
    )
    for column, *cells in zip(columns, *rows, strict=True):
        # For rich, the least width of a cell is its longest word, even if it must not wrap.
        widest = max(cell_len(cell) for cell in (column, *cells))
        can_wrap = column == fold
        table.add_column(column, no_wrap=not can_wrap, min_width=None if can_wrap else widest)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    if Measurement.get(console, console.options.update(width=1000), table).minimum <= console.width:
        console.print(table)
        return
    for row in rows:
        console.print(Text(f"{columns[0]} {row[0]}", style="bold"))
        for column, cell in zip(columns[1:], row[1:], strict=True):
            console.print(Text(f"  {column}: {cell}"))


def print_records(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str) -> None:
    """Print each row of a table as a record for reading: its first cell, then the named others.

    Empty cells are left out. If the output is not a terminal, no line is wrapped.
    """
    console = stdout if stdout.is_terminal else Terminal(width=100_000)
    console.print(Text(f"\n{title}", style="bold"))
    for first, *others in rows:
        console.print(Padding.indent(Text(first), 2))
        for column, cell in zip(columns[1:], others, strict=True):
            if cell:
                console.print(Padding.indent(Text(f"{column}: {cell}"), 6))


def working(words: str) -> AbstractContextManager[Any]:
    """Show a message with a spinner on standard error, if that is a terminal."""
    return stderr.status(words) if stderr.is_terminal else nullcontext()


class Bar(Progress):
    """One progress bar on standard error, if that is a terminal."""

    def __init__(self, title: str, total: int) -> None:
        # Transient: of a finished command, only its result stays on the screen.
        words, count = TextColumn("{task.description}"), MofNCompleteColumn()
        columns = (words, BarColumn(), count, TimeElapsedColumn())
        super().__init__(*columns, console=stderr, transient=True, disable=not stderr.is_terminal)
        self.bar = self.add_task(title, total=total)

    @property
    def completed(self) -> int:
        """The number of completed steps."""
        return int(self.tasks[0].completed)

    def reach(self, completed: int, description: str) -> None:
        """Set the number of completed steps; the description says what was just done."""
        self.update(self.bar, completed=completed, description=description)

    def step(self, description: str | None = None) -> None:
        """Count one more completed step."""
        self.update(self.bar, advance=1, description=description)


@contextmanager
def progress(
    title: str, total: int, describe_stop: Callable[[int], str] | None = None
) -> Iterator[Bar]:
    """Show a progress bar.

    On Ctrl-C, print the line that `describe_stop` returns for the number of completed steps.
    """
    with Bar(title, total) as bar:
        try:
            yield bar
        except KeyboardInterrupt:
            if describe_stop is not None:
                stderr.print(describe_stop(bar.completed), soft_wrap=True)
            raise
