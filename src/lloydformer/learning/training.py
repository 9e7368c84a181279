"""Training: many runs together, with evaluations, a log and checkpoints to resume from."""

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

from lloydformer.circuits.circuit import Circuit
from lloydformer.circuits.gradients import warn_without_gradient
from lloydformer.circuits.stages import AnyRecipe
from lloydformer.engines.ranks import Ranks
from lloydformer.learning.checkpoint import Checkpoint, Row, load_checkpoint, save_checkpoint
from lloydformer.learning.cuda_graph import GraphedTrainer
from lloydformer.learning.run_groups import RunGroups
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.trainer import Trainer
from lloydformer.storage.atomic import write_whole
from lloydformer.storage.model_folder import CONFIG

CHECKPOINT = "checkpoint"
LOG = "log.csv"


@dataclass(frozen=True)
class Evaluation:
    """Hold the numbers of one evaluation during training, one for each run.

    Parameters
    ----------
    step : int
        Training steps done.
    n_steps : int
        Training steps in all.
    loss : tuple of float
        Mean loss since the last evaluation.
    relative : tuple of float
        Mean over the validation tasks of the objective divided by Lloyd's, after the same number
        of steps. Below 1 the layer is better than Lloyd's algorithm.
    rate : tuple of float
        Learning rate of the steps before the evaluation.

    See Also
    --------
    train : Calls a callback with evaluations.

    Examples
    --------
    >>> import lloydformer as lf
    >>> lf.learning.Evaluation(50, 100, loss=(2.0,), relative=(1.1,), rate=(0.01,)).relative
    (1.1,)
    """

    step: int
    n_steps: int
    loss: tuple[float, ...]
    relative: tuple[float, ...]
    rate: tuple[float, ...]


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
        return _csv(self.runs, self.history)

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
        What `joined_ranks()` of `lloydformer.engines.ranks` returns, to spread the groups of runs
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
    found = ranks.from_first(lambda: _resumed(settings, tuple(runs), place, resume, force))
    groups = RunGroups(
        settings, runs, device or ("cuda" if torch.cuda.is_available() else "cpu"),
        found.together if found else together, ranks,
    )  # fmt: skip
    history: list[Evaluation] = []
    if found:
        groups.assign(found.tensors)
        history = [_evaluation(row, settings.n_steps) for row in found.history]
        if place:  # a killed run may have left a later log, and files that were not ready
            _save(groups, history, place)
    began = perf_counter()
    if not history and settings.start == "constructed":
        history.append(_joined(groups.of_all(_first)))
        if callback and ranks.rank == 0:
            callback(history[-1])
    while not history or history[-1].step < settings.n_steps:
        history.append(_joined(groups.of_all(_advanced)))
        done = history[-1].step >= settings.n_steps
        if place and (done or len(history) % checkpoint_every == 0):
            _save(groups, history, place)
        if callback and ranks.rank == 0:
            callback(history[-1])
    return Trained(settings, groups.runs, groups.tensors()["weights"], tuple(history),
                   perf_counter() - began, groups.together)  # fmt: skip


def _joined(parts: list[Evaluation]) -> Evaluation:
    """The evaluation of all groups."""
    columns = (
        tuple(value for part in parts for value in getattr(part, name))
        for name in ("loss", "relative", "rate")
    )
    return Evaluation(parts[0].step, parts[0].n_steps, *columns)


def _first(trainer: Trainer, graphed: GraphedTrainer) -> Evaluation:
    """Evaluate before the first step."""
    loss, rate = trainer.next_losses(), tuple(trainer.state.rate.tolist())
    graphed.evaluate()
    relative = tuple(trainer.measured.tolist())
    return Evaluation(0, trainer.settings.n_steps, tuple(loss.tolist()), relative, rate)


def _advanced(trainer: Trainer, graphed: GraphedTrainer) -> Evaluation:
    """Train until the next evaluation is due, then evaluate."""
    settings, state = trainer.settings, trainer.state
    steps = min(settings.evaluate_every, settings.n_steps - int(state.step))
    for _ in range(steps):
        graphed.step()
    rate = tuple(state.rate.tolist())
    graphed.evaluate()
    loss = tuple((state.loss / steps).tolist())
    state.loss.zero_()
    relative = tuple(trainer.measured.tolist())
    return Evaluation(int(state.step), settings.n_steps, loss, relative, rate)


def _resumed(
    settings: Settings, runs: tuple[Run, ...], folder: Path | None, resume: bool, force: bool
) -> Checkpoint | None:
    """The checkpoint to continue from; None to start from the beginning."""
    there = folder is not None and (folder / CHECKPOINT / CONFIG).exists()
    if not there or folder is None or (force and not resume):
        if resume and not there:
            raise ValueError(f"{folder}: holds no checkpoint to resume from; train without resume")
        return None
    if not resume:
        raise ValueError(
            f"{folder}: holds a checkpoint; continue it with resume, or start again with force"
        )
    found = load_checkpoint(folder / CHECKPOINT)
    if (found.settings, found.runs) != (settings, runs):
        raise ValueError(
            f"{folder}: its checkpoint has other settings or runs; continue with those, or train "
            "in another folder"
        )
    return found


def _row(e: Evaluation) -> Row:
    """Return an evaluation as JSON values; None for NaN and infinity, which JSON lacks."""
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


def _save(groups: RunGroups, history: list[Evaluation], folder: Path) -> None:
    """Rank 0 writes the log and the checkpoint of all runs."""
    checkpoint = Checkpoint(
        groups.settings, groups.runs, groups.tensors(), tuple(_row(e) for e in history),
        groups.together,
    )  # fmt: skip

    def write() -> None:
        write_whole(folder / LOG, _csv(groups.runs, history))
        save_checkpoint(folder / CHECKPOINT, checkpoint)

    groups.ranks.from_first(write)


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
