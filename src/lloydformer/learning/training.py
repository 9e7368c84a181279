"""Training: many runs together, evaluated, logged, and safe against being killed."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.captured import Captured
from lloydformer.learning.checkpoint import Checkpoint, Row, load_checkpoint, save_checkpoint
from lloydformer.learning.program import Program, stack
from lloydformer.learning.settings import Run, Settings
from lloydformer.storage.atomic import write_whole
from lloydformer.storage.model_folder import CONFIG

CHECKPOINT = "checkpoint"
LOG = "log.csv"


@dataclass(frozen=True)
class Evaluation:
    """What a callback hears after each evaluation; a number for each run."""

    step: int
    n_steps: int
    loss: tuple[float, ...]
    relative: tuple[float, ...]
    """Objective of the validation tasks over that of as many Lloyd steps, on average."""
    rate: tuple[float, ...]


@dataclass(frozen=True)
class Trained:
    """What training came to."""

    settings: Settings
    runs: tuple[Run, ...]
    weights: Float[Tensor, "r p"]
    history: tuple[Evaluation, ...]
    seconds: float = 0.0

    def log(self) -> str:
        """Every evaluation of every run, as CSV."""
        return _csv(self.runs, self.history)


def train(
    settings: Settings | None = None,
    runs: Sequence[Run] = (Run(),),
    *,
    device: str | torch.device | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    checkpoint_every: int = 10,
    callback: Callable[[Evaluation], None] | None = None,
) -> Trained:
    """Train several runs with the same settings, together.

    device: CUDA where there is one. folder: where a checkpoint and log.csv are written, every
    `checkpoint_every` evaluations; with `resume` training goes on from the checkpoint that is
    there, and comes to the same weights as if it had never stopped. force: begin anew over it.
    """
    settings = settings or Settings()
    program = stack(settings, runs, device or ("cuda" if torch.cuda.is_available() else "cpu"))
    place = None if folder is None else Path(folder)
    history = _begun(program, place, resume, force)
    began = perf_counter()
    work = Captured(program)
    while int(program.state.step) < settings.n_steps:
        history.append(_advanced(program, work))
        done = history[-1].step >= settings.n_steps
        if place and (done or len(history) % checkpoint_every == 0):
            _save(program, history, place)
        if callback:
            callback(history[-1])
    return Trained(settings, program.runs, program.state.weights.detach().cpu(), tuple(history),
                   perf_counter() - began)  # fmt: skip


def _advanced(program: Program, work: Captured) -> Evaluation:
    """The steps up to the next evaluation, and that."""
    settings, state = program.settings, program.state
    steps = min(settings.evaluate_every, settings.n_steps - int(state.step))
    for _ in range(steps):
        work.step()
    rate = tuple(state.rate.tolist())
    work.evaluate()
    loss = tuple((state.loss / steps).tolist())
    state.loss.zero_()
    relative = tuple(program.measured.tolist())
    return Evaluation(int(state.step), settings.n_steps, loss, relative, rate)


def _begun(program: Program, folder: Path | None, resume: bool, force: bool) -> list[Evaluation]:
    """The evaluations so far: none, or those of the checkpoint that is gone on from."""
    there = folder is not None and (folder / CHECKPOINT / CONFIG).exists()
    if not there or folder is None or (force and not resume):
        if resume and not there:
            raise ValueError(f"{folder}: holds no checkpoint to go on from; train without resume")
        return []
    if not resume:
        raise ValueError(
            f"{folder}: holds a checkpoint; go on from it with resume, or begin anew with force"
        )
    found = load_checkpoint(folder / CHECKPOINT)
    if (found.settings, found.runs) != (program.settings, program.runs):
        raise ValueError(
            f"{folder}: its checkpoint is of other settings or runs; go on with those, or train in "
            "another folder"
        )
    program.state.assign({n: t.to(program.device) for n, t in found.tensors.items()})
    return [_evaluation(row, program.settings.n_steps) for row in found.history]


def _row(e: Evaluation) -> Row:
    """As JSON, which has no word for what is no number."""
    columns = {"step": (float(e.step),), "loss": e.loss, "relative": e.relative, "rate": e.rate}
    return {
        name: [value if math.isfinite(value) else None for value in values]
        for name, values in columns.items()
    }


def _evaluation(row: Row, n_steps: int) -> Evaluation:
    step, *columns = (
        tuple(math.nan if value is None else value for value in row[name])
        for name in ("step", "loss", "relative", "rate")
    )
    return Evaluation(int(step[0]), n_steps, *columns)


def _save(program: Program, history: list[Evaluation], folder: Path) -> None:
    rows = tuple(_row(e) for e in history)
    tensors = program.state.tensors()
    write_whole(folder / LOG, _csv(program.runs, history))
    save_checkpoint(folder / CHECKPOINT, Checkpoint(program.settings, program.runs, tensors, rows))


def _csv(runs: Sequence[Run], history: Sequence[Evaluation]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["step", "seed", "loss_temperature", "family", "loss", "relative_objective",
                    "learning_rate"])  # fmt: skip
    for e in history:
        for run, loss, relative, rate in zip(runs, e.loss, e.relative, e.rate, strict=True):
            table.writerow([e.step, run.seed, run.loss_temperature, run.family, loss, relative,
                            rate])  # fmt: skip
    return text.getvalue()
