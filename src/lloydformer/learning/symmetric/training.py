"""Training of symmetric layers: many runs together, on the same tasks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.cuda_graph import capture_graphs
from lloydformer.learning.optimiser import TrainingState, adam_step
from lloydformer.learning.random_numbers import stream_keys, uniform
from lloydformer.learning.symmetric.initial_weights import initial_stack
from lloydformer.learning.symmetric.layer import SymmetricLayer
from lloydformer.learning.symmetric.loss import above_start, losses, spreads
from lloydformer.learning.symmetric.number_layout import NumberLayout
from lloydformer.learning.symmetric.settings import Shape, SymmetricRun, SymmetricSettings
from lloydformer.learning.symmetric.varied_tasks import SharedBatch, VariedTasks

_STARTS = 4
"""Starts of Lloyd's algorithm that measure how much the result of a task depends on the start."""

Heard = tuple[int, tuple[float, ...]]
"""What a callback gets: updates done, and the mean loss of each run since the last call."""


@dataclass
class SymmetricTrainer:
    """Runs that are trained together; `step` reads and writes `state` and nothing else."""

    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    device: torch.device

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs: found none; pass at least one SymmetricRun()")
        most = max(run.n_heads for run in self.runs)
        self.layer = SymmetricLayer(NumberLayout(most, self.settings.n_apart))
        first, trainable = initial_stack(self.layer.numbers, self.runs)
        self.trainable = trainable.to(self.device)
        self.state = TrainingState.begin(first.to(self.device), 0.0)
        self.seed = torch.tensor([self.settings.seed], device=self.device)
        self.rates, self.evenness, self.bounded = (
            torch.tensor([float(getattr(run, name)) for run in self.runs], device=self.device)
            for name in ("learning_rate", "evenness", "bounded")
        )

    def step(self, shape: Shape) -> None:
        """Draw tasks of a shape, compute the gradient of the loss, and update the weights."""
        state = self.state
        batch = VariedTasks(shape.n_features).draw(self.seed, state.step, shape[:3])
        share = self._shares(batch)
        weights = state.weights.detach().requires_grad_()
        with torch.enable_grad():
            each = self._losses(weights, batch, shape.n_steps) * share
            (gradient,) = torch.autograd.grad(each.sum(), weights)
        state.loss += each.detach().sum(dim=0)
        # gradients that are not finite are ignored
        finite = torch.nan_to_num(gradient * self.trainable, 0.0, 0.0, 0.0)
        adam_step(state, finite, self.settings.clip)

    def _losses(
        self, weights: Float[Tensor, "r p"], batch: SharedBatch, n_steps: int
    ) -> Float[Tensor, "b r"]:
        each = losses(self.layer, weights, batch, n_steps, self.settings.earlier)
        above = 2 * above_start(each / (1 + self.settings.earlier), batch)
        return torch.where(self.bounded > 0, -torch.nn.functional.softplus(-above) / 2, each)

    def _shares(self, batch: SharedBatch) -> Float[Tensor, "b r"]:
        """The weight of each task for each run; they sum to 1 over the tasks."""
        points, k = batch.points, batch.centers.shape[1]
        size, n, _ = points.shape
        u = uniform(stream_keys(self.seed, "starts", self.state.step), size, _STARTS, n)[0]
        tasks = torch.arange(size, device=self.device)[:, None, None]
        spread = spreads(batch, points[tasks, u.topk(k, dim=-1).indices])
        share = spread[:, None] ** -self.evenness
        return share / share.sum(dim=0)


@dataclass(frozen=True)
class TrainedSymmetric:
    """The result of training: weights (r, p), and the mean losses during training."""

    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    numbers: NumberLayout
    weights: Float[Tensor, "r p"]
    history: tuple[Heard, ...]
    seconds: float


def train_symmetric(
    settings: SymmetricSettings | None = None,
    runs: Sequence[SymmetricRun] = (SymmetricRun(),),
    *,
    device: str | torch.device | None = None,
    callback: Callable[[Heard], None] | None = None,
) -> TrainedSymmetric:
    """Train several runs together.

    `device`: by default CUDA if available, else the CPU. `callback`: called every
    `evaluate_every` updates, and after the last.
    """
    settings = settings or SymmetricSettings()
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    trainer = SymmetricTrainer(settings, tuple(runs), device)
    steps = step_functions(trainer)
    began, history = perf_counter(), list[Heard]()
    for update in range(settings.n_updates):
        trainer.state.rate.copy_(trainer.rates * settings.rate(update))
        steps[settings.shapes[update % len(settings.shapes)]]()
        if (update + 1) % settings.evaluate_every == 0 or update + 1 == settings.n_updates:
            history.append(_mean_loss(trainer.state, update + 1, settings.evaluate_every))
            if callback:
                callback(history[-1])
    weights = trainer.state.weights.detach().cpu()
    return TrainedSymmetric(settings, trainer.runs, trainer.layer.numbers, weights,
                            tuple(history), perf_counter() - began)  # fmt: skip


def step_functions(trainer: SymmetricTrainer) -> dict[Shape, Callable[[], None]]:
    """Return the step of each shape, as a CUDA graph on CUDA; the state is unchanged."""
    found: dict[Shape, Callable[[], None]] = {
        shape: partial(trainer.step, shape) for shape in trainer.settings.shapes
    }
    if trainer.device.type == "cuda":
        before = {name: t.clone() for name, t in trainer.state.tensors().items()}
        found = dict(zip(found, capture_graphs(*found.values()), strict=True))
        trainer.state.assign(before)
    return found


def _mean_loss(state: TrainingState, update: int, every: int) -> Heard:
    """Average the losses since the last call, and reset their sum."""
    n = (update - 1) % every + 1
    loss = tuple((state.loss / n).tolist())
    state.loss.zero_()
    return update, loss
