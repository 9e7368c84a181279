"""What `train` prints: progress, a table of the runs, and a line on Ctrl-C."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lloydformer.cli.terminal import print_json, print_table, progress, stderr

if TYPE_CHECKING:
    from lloydformer.learning.training import Evaluation


class TrainingProgress:
    """A progress bar as a callback of training; on Ctrl-C, prints what is done so far.

    drawing: another callback, called first. resumable: whether --resume may follow. shown: False
    in all ranks but the first.
    """

    def __init__(
        self,
        n_steps: int,
        folder: Path,
        drawing: "Callable[[Evaluation], None] | None" = None,
        resumable: bool = True,
        shown: bool = True,
    ) -> None:
        self.n_steps, self.folder = n_steps, folder
        self.drawing, self.resumable, self.shown = drawing, resumable, shown
        self.last: Evaluation | None = None
        self._open = ExitStack()

    def __enter__(self) -> "TrainingProgress":
        if self.shown:
            self._bar = self._open.enter_context(progress("train", self.n_steps))
        return self

    def __call__(self, evaluation: "Evaluation") -> None:
        self.last = evaluation
        best, worst = min(evaluation.relative), max(evaluation.relative)
        words = f"{best:.4f}" if len(evaluation.relative) == 1 else f"{best:.4f} to {worst:.4f}"
        self._bar.reach(evaluation.step, f"train: {words} of a Lloyd step")
        if self.drawing is not None:
            self.drawing(evaluation)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()
        if isinstance(error, KeyboardInterrupt) and self.shown:
            stderr.print(self._so_far(), markup=False, soft_wrap=True)

    def _so_far(self) -> str:
        if self.last is None:
            return "stopped before the first evaluation"
        words = (
            f"stopped after step {self.last.step} of {self.last.n_steps}, at "
            f"{min(self.last.relative):.4f} of a Lloyd step"
        )
        if not self.resumable:
            return words
        from lloydformer.learning.training import CHECKPOINT

        return f"{words}; go on from {self.folder / CHECKPOINT} with --resume"


@contextmanager
def like_progress(n_updates: int) -> Iterator[Callable[[int, float], None]]:
    """A progress bar for a symmetric layer; on Ctrl-C, prints the last update."""
    done = 0
    with progress("train", n_updates) as bar:

        def callback(update: int, loss: float) -> None:
            nonlocal done
            done = update
            bar.reach(update, f"train: loss {loss:.4f}")

        try:
            yield callback
        except KeyboardInterrupt:
            stderr.print(f"stopped after update {done} of {n_updates}; nothing was written")
            raise


def four_digits(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def print_rows(
    settings: dict[str, Any],
    rows: Sequence[dict[str, Any]],
    json: bool,
    cell: Callable[[Any], str] = four_digits,
) -> None:
    """Print a table with a row for each run, or one JSON object; `cell` formats a value."""
    if json:
        return print_json({"settings": settings, "rows": list(rows)})
    print_table(list(rows[0]), [[cell(value) for value in row.values()] for row in rows])
    return None
