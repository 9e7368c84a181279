"""A progress bar for estimators, as a callback."""

import sys
from time import perf_counter
from typing import Any, Protocol

from lloydformer.solving.run import Progress

# Seconds between two updates in a notebook, which stores and draws each of them.
_SECONDS = 0.1


class ProgressBar:
    """A progress bar on standard error, as the `callback` of an estimator.

    It shows the start, the iteration, the objective and the points per second. Use it in a `with`
    statement: the bar is shown inside of it. In a notebook it is a line of text, which needs no
    widgets. A copy in another process, as in a grid search with `n_jobs`, shows nothing.

    See Also
    --------
    KMeans : Its parameter `callback` takes the bar, as that of every estimator does.

    Examples
    --------
    >>> import lloydformer as lf
    >>> with lf.ProgressBar() as bar:
    ...     model = lf.KMeans(2, init=[[0.0], [8.0]], callback=bar).fit([[0.0], [8.0]])
    >>> model.n_iter_
    1
    """

    def __init__(self) -> None:
        self._display: _Display | None = None
        self._elsewhere = False

    def __deepcopy__(self, memo: object) -> "ProgressBar":
        """Return the bar itself: clones of an estimator report to the same one."""
        return self

    def __getstate__(self) -> dict[str, bool]:
        """Return the state of a copy in another process, which shows nothing."""
        # The bar draws in the terminal of this process, and cannot be pickled.
        return {"_elsewhere": True}

    def __setstate__(self, state: dict[str, bool]) -> None:
        self.__init__()  # type: ignore[misc]
        self.__dict__.update(state)

    def __enter__(self) -> "ProgressBar":
        # Imported here, so that `import lloydformer` stays fast.
        from rich.console import Console

        console = Console(stderr=True)
        self._display = _NotebookLine() if console.is_jupyter else _TerminalBar(console)
        return self

    def __call__(self, progress: Progress) -> None:
        if self._display is None and self._elsewhere:
            return
        if self._display is None:
            raise RuntimeError("callback: the bar is not shown; use it in a with statement")
        words = f"start {progress.start + 1}, iteration {progress.iteration + 1}, "
        words += f"objective {progress.objective:.6g}{_speed(progress)}"
        self._display.update(words)

    def __exit__(self, *exception: object) -> None:
        if self._display is not None:
            self._display.stop()
            self._display = None


class _Display(Protocol):
    """Shows the words of the last update until it is stopped."""

    def update(self, words: str) -> None: ...

    def stop(self) -> None: ...


class _TerminalBar:
    """A line of rich, with a spinner and the time."""

    def __init__(self, console: Any) -> None:
        from rich.progress import Progress as Bars
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bars = Bars(*columns, console=console)
        self._task = self._bars.add_task("seeding", total=None)
        self._bars.start()

    def update(self, words: str) -> None:
        self._bars.update(self._task, description=words)

    def stop(self) -> None:
        self._bars.stop()


class _NotebookLine:
    """A line of text on standard error that is written over; a notebook knows carriage returns.

    rich draws in notebooks by ipywidgets. Without them it shows a warning and no bar.
    """

    def __init__(self) -> None:
        self._began, self._width = perf_counter(), 0
        self._words = "seeding"
        self._write()

    def update(self, words: str) -> None:
        self._words = words
        if perf_counter() - self._written >= _SECONDS:
            self._write()

    def stop(self) -> None:
        self._write("\n")

    def _write(self, end: str = "") -> None:
        self._written = perf_counter()
        line = f"{self._words}, {self._written - self._began:.0f} s"
        # Spaces cover the rest of a longer line.
        print(f"\r{line.ljust(self._width)}", end=end, file=sys.stderr, flush=True)
        self._width = len(line)


def _speed(progress: Progress) -> str:
    """Return the points per second of the iteration, with the unit that leaves few digits."""
    if not progress.n_points or not progress.seconds:
        return ""
    speed = progress.n_points / progress.seconds
    for unit, size in (("million ", 1e6), ("thousand ", 1e3)):
        if speed >= size:
            return f", {speed / size:.3g} {unit}points/s"
    return f", {speed:.3g} points/s"
