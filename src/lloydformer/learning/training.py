"""Training: many runs together, with evaluations, a log and checkpoints to resume from."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.gradients import warn_without_gradient
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.data.storage.atomic_files import atomic_write_text
from lloydformer.data.storage.model_folder import CONFIG
from lloydformer.engines.ranks import Ranks
from lloydformer.learning.checkpoint import TrainingCheckpoint, load_checkpoint, save_checkpoint
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.trainer import Evaluation, Trainer

CHECKPOINT = "checkpoint"
LOG = "log.csv"

V = TypeVar("V")


@dataclass(frozen=True)
class Trained:
    """Hold the result of training.

    Parameters
    ----------
    settings : Settings
        Settings of all runs.
    runs : tuple of Run
        The runs.
    weights : Tensor of shape (r, p)
        Weights of each run, on the CPU.
    history : tuple of Evaluation
        The evaluations, in order.
    seconds : float, default=0.0
        Time that training took.
    together : int or None, default=None
        Number of runs that were trained in one batch; None for all of them.

    See Also
    --------
    train : Trains runs.

    Examples
    --------
    >>> import lloydformer as lf
    >>> tasks = lf.learning.Tasks(n_features=2, n_clusters=3, n_points=20)
    >>> settings = lf.learning.Settings(tasks, n_steps=4, evaluate_every=2, n_validation=4)
    >>> trained = lf.learning.train(settings, device="cpu")
    >>> [evaluation.step for evaluation in trained.history]
    [2, 4]
    """

    settings: Settings
    runs: tuple[Run, ...]
    weights: Float[Tensor, "r p"]
    history: tuple[Evaluation, ...]
    seconds: float = 0.0
    together: int | None = None

    def log(self) -> str:
        """Format every evaluation of every run as CSV.

        Returns
        -------
        str
            A header and one line for each evaluation and run.

        See Also
        --------
        train : Writes the log as log.csv if a folder is given.

        Examples
        --------
        >>> import lloydformer as lf
        >>> tasks = lf.learning.Tasks(n_features=2, n_clusters=3, n_points=20)
        >>> settings = lf.learning.Settings(tasks, n_steps=2, evaluate_every=1, n_validation=4)
        >>> trained = lf.learning.train(settings, device="cpu")
        >>> trained.log().splitlines()[0]
        'step,seed,loss_temperature,family,loss,relative_objective,learning_rate'
        """
        return _format_log(self.runs, self.history)

    def circuit(self, number: int = 0) -> Circuit:
        """Build a circuit with the weights of a run, whose intermediate values can be read.

        Parameters
        ----------
        number : int, default=0
            Number of the run.

        Returns
        -------
        Circuit
            The circuit in evaluation mode; its weights are parameters.

        See Also
        --------
        Pretrained.circuit : The same for weights of a file.

        Examples
        --------
        >>> import torch
        >>> import lloydformer as lf
        >>> tasks = lf.learning.Tasks(n_features=2, n_clusters=3, n_points=20)
        >>> settings = lf.learning.Settings(tasks, n_steps=2, evaluate_every=1, n_validation=4)
        >>> trained = lf.learning.train(settings, device="cpu")
        >>> points = torch.rand(50, 2)
        >>> trained.circuit()(points, points[:3], n_layers=4).centers.shape
        torch.Size([5, 3, 2])
        """
        return self.settings.layer.circuit_of(self.weights[number])


def train(
    settings: Settings | None = None,
    runs: Sequence[Run] = (Run(),),
    *,
    recipe: AnyRecipe | None = None,
    start: str | None = None,
    device: str | torch.device | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    checkpoint_every: int = 10,
    callback: Callable[[Evaluation], None] | None = None,
    together: int | None = None,
    ranks: Ranks | None = None,
) -> Trained:
    """Train several runs with the same settings, together.

    A training that is killed and resumed gives the same weights as one that was not.

    Parameters
    ----------
    settings : Settings or None, default=None
        Settings of all runs; None for the defaults, the paper's protocol.
    runs : sequence of Run, default=(Run(),)
        The runs.
    recipe : Recipe or None, default=None
        The recipe whose weights are trained, in place of the one of the settings:
        `lf.recipes.learned(...)`, or a recipe with constructed weights.
    start : {"random", "constructed"} or None, default=None
        Weights before the first step, in place of the start of the settings. The history of a
        training from constructed weights begins with an evaluation at step 0.
    device : str, torch.device or None, default=None
        Device; None for CUDA if available, else the CPU.
    folder : str, Path or None, default=None
        Folder for a checkpoint and log.csv; None to write nothing.
    resume : bool, default=False
        Continue from the checkpoint in `folder`.
    force : bool, default=False
        Start again although `folder` holds a checkpoint, which is replaced.
    checkpoint_every : int, default=10
        Evaluations between checkpoints.
    callback : callable or None, default=None
        Called with an `Evaluation` after each evaluation.
    together : int or None, default=None
        Number of runs that are trained in one batch; None for all runs, or for an equal share of
        them on each rank. It changes the last bits of the weights, the number of ranks does not.
    ranks : Ranks or None, default=None
        What `join_ranks()` of `lloydformer.engines.ranks` returns, to spread the groups of runs
        over the processes of `torchrun`; None to train here. All ranks pass the same arguments and
        get the same result; rank 0 writes the files and calls the callback.

    Returns
    -------
    Trained
        Weights of each run, and the evaluations.

    Raises
    ------
    ValueError
        If there are no runs, if the recipe cannot be trained from this start, or if `resume` and
        `force` do not fit what `folder` holds.

    Warns
    -----
    NoGradientWarning
        If no gradient reaches some of the recipe's weights.

    See Also
    --------
    Settings : What runs share.
    Run : What each run has alone.
    compare : Compare trained layers with Lloyd's algorithm.

    Examples
    --------
    >>> import lloydformer as lf
    >>> tasks = lf.learning.Tasks(n_features=2, n_clusters=3, n_points=20)
    >>> settings = lf.learning.Settings(tasks, n_steps=4, evaluate_every=2, n_validation=4)
    >>> runs = [lf.learning.Run(seed=0), lf.learning.Run(seed=1, family="laplace")]
    >>> trained = lf.learning.train(settings, runs, device="cpu")
    >>> len(trained.weights), trained.history[-1].step
    (2, 4)
    >>> trained = lf.learning.train(settings, start="constructed", device="cpu")
    >>> trained.history[0].step, trained.history[0].relative[0] < 1.1  # nearly a Lloyd step
    (0, True)
    """
    settings = settings or Settings()
    if recipe is not None or start is not None:
        settings = settings.with_recipe(recipe or settings.recipe, start)
    warn_without_gradient(settings.layer.circuit(0))
    if not runs:
        raise ValueError("runs: found none; pass at least one lf.learning.Run()")
    ranks = ranks or Ranks()
    place = None if folder is None else Path(folder)
    checkpoint = ranks.from_first(
        lambda: _find_checkpoint(settings, tuple(runs), place, resume, force)
    )
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    together = checkpoint.together if checkpoint else together
    groups = RunGroups(settings, runs, device, together, ranks)
    history: list[Evaluation] = []
    if checkpoint:
        groups.assign(checkpoint.tensors)
        history = list(checkpoint.history)
        if place:  # a killed run may have left a later log, and files that were not ready
            _save(groups, history, place)
    began = perf_counter()
    while not history or history[-1].step < settings.n_steps:
        if not history and settings.start == "constructed":
            history.append(groups.evaluate(Trainer.evaluate_first))
        else:
            history.append(groups.evaluate(Trainer.advance))
            done = history[-1].step >= settings.n_steps
            if place and (done or len(history) % checkpoint_every == 0):
                _save(groups, history, place)
        if callback and ranks.rank == 0:
            callback(history[-1])
    return Trained(
        settings,
        tuple(runs),
        groups.tensors()["weights"],
        tuple(history),
        seconds=perf_counter() - began,
        together=groups.together,
    )


def _find_checkpoint(
    settings: Settings, runs: tuple[Run, ...], folder: Path | None, resume: bool, force: bool
) -> TrainingCheckpoint | None:
    """Return the checkpoint to continue from; None to start from the beginning."""
    exists = folder is not None and (folder / CHECKPOINT / CONFIG).exists()
    if resume and not exists:
        raise ValueError(f"{folder}: holds no checkpoint to resume from; train without resume")
    if folder is None or not exists or (force and not resume):
        return None
    if not resume:
        raise ValueError(
            f"{folder}: holds a checkpoint; continue it with resume, or start again with force"
        )
    checkpoint = load_checkpoint(folder / CHECKPOINT)
    if (checkpoint.settings, checkpoint.runs) != (settings, runs):
        raise ValueError(
            f"{folder}: its checkpoint has other settings or runs; continue with those, or train "
            "in another folder"
        )
    return checkpoint


def _save(groups: "RunGroups", history: list[Evaluation], folder: Path) -> None:
    """Write the log and the checkpoint of all runs, on rank 0; the other ranks wait for it."""
    tensors = groups.tensors()
    checkpoint = TrainingCheckpoint(
        groups.settings, groups.runs, tensors, tuple(history), groups.together
    )

    def write() -> None:
        atomic_write_text(folder / LOG, _format_log(groups.runs, history))
        save_checkpoint(folder / CHECKPOINT, checkpoint)

    groups.ranks.from_first(write)


def _format_log(runs: Sequence[Run], history: Sequence[Evaluation]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    of_run = ["seed", "loss_temperature", "family"]
    table.writerow(["step", *of_run, "loss", "relative_objective", "learning_rate"])
    for e in history:
        for run, *values in zip(runs, e.loss, e.relative, e.rate, strict=True):
            table.writerow([e.step, *(getattr(run, name) for name in of_run), *values])
    return text.getvalue()


class RunGroups:
    """The trainers of this rank, and the state of all runs of all ranks.

    Runs of a group are trained together, and each rank trains some of the groups. The last bits of
    a run depend on the runs of its group, since products of matrices are summed in another order,
    but not on the ranks: the same groups give the same weights on 1, 2 or 7 ranks.

    Parameters
    ----------
    settings : Settings
        Settings of all runs.
    runs : sequence of Run
        All runs, at least one.
    device : str or torch.device
        Where this rank trains.
    together : int or None
        Runs of a group; None for as many as give each rank one group.
    ranks : Ranks
        The processes that share the training.
    """

    def __init__(
        self,
        settings: Settings,
        runs: Sequence[Run],
        device: str | torch.device,
        together: int | None,
        ranks: Ranks,
    ) -> None:
        self.settings, self.runs, self.ranks = settings, tuple(runs), ranks
        self.together = size = together or -(-len(self.runs) // ranks.size)
        starts = range(0, len(self.runs), size)
        first, stop = (len(starts) * rank // ranks.size for rank in (ranks.rank, ranks.rank + 1))
        self.places = [slice(start, start + size) for start in starts[first:stop]]
        self.trainers = [Trainer(settings, self.runs[place], device) for place in self.places]
        for trainer in self.trainers:
            trainer.capture()

    def evaluate(self, how: Callable[[Trainer], Evaluation]) -> Evaluation:
        """Return the evaluation of all runs of all ranks, from those of their groups."""
        parts = self._gather(how)
        loss, relative, rate = (
            tuple(chain.from_iterable(getattr(part, name) for part in parts))
            for name in ("loss", "relative", "rate")
        )
        return Evaluation(parts[0].step, parts[0].n_steps, loss, relative, rate)

    def _gather(self, function: Callable[[Trainer], V]) -> list[V]:
        """Call a function for each group of this rank; return the results of all groups."""
        found = self.ranks.gather_results(lambda: [function(one) for one in self.trainers])
        return list(chain.from_iterable(found))

    def tensors(self) -> dict[str, Tensor]:
        """Return the state of all runs on the CPU, a row for each run."""

        def copy(trainer: Trainer) -> dict[str, Tensor]:
            return {name: t.detach().cpu() for name, t in trainer.state.tensors().items()}

        parts = self._gather(copy)
        return {
            name: torch.cat([part[name] for part in parts]) if tensor.ndim else tensor
            for name, tensor in parts[0].items()
        }

    def assign(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the state of all runs."""
        for place, trainer in zip(self.places, self.trainers, strict=True):
            own = {name: t[place] if t.ndim else t for name, t in tensors.items()}
            trainer.state.assign(own)
