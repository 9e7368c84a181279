"""One training step and one evaluation, for many runs at once."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.dropout import Dropout
from lloydformer.learning.lloyd import lloyd_path
from lloydformer.learning.objective import relative_objective, smoothed_objective
from lloydformer.learning.optimiser import TrainingState, adam_step, update_learning_rate
from lloydformer.learning.random_numbers import stream_keys
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.starts import start_weights
from lloydformer.learning.tasks import Batch

_CELLS = 1 << 28
"""Upper bound of the encoder self-attention scores in memory at a time, in an evaluation."""


@dataclass
class Trainer:
    """Runs with the same settings, trained together in one batch.

    `step` and `evaluate` read and write `state`, and `evaluate` also writes `measured`; nothing
    else changes. So both can be captured as CUDA graphs, and training continues exactly from a
    restored state.
    """

    settings: Settings
    runs: tuple[Run, ...]
    device: torch.device
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        s = self.settings
        self.layer = s.layer
        self.families = tuple(run.family for run in self.runs)
        self.seeds = torch.tensor([run.seed for run in self.runs], device=self.device)
        lambdas = [run.loss_temperature for run in self.runs]
        self.temperatures = torch.tensor(lambdas, device=self.device, dtype=self.dtype)
        weights = start_weights(s, self.runs).to(self.device, self.dtype)
        self.state = TrainingState.begin(weights, s.learning_rate)
        self.measured = torch.zeros_like(self.temperatures)
        self.validation = self._validation()

    def step(self) -> None:
        """Draw tasks, compute the gradient of the loss, and update the weights."""
        s, state = self.settings, self.state
        batch = self._draw(self.seeds, state.step, s.batch_size)
        weights = state.weights.detach().requires_grad_()
        probability = s.recipe.encoder_cross.dropout
        dropout = Dropout(self.seeds, state.step, probability) if probability else None
        with torch.enable_grad():
            losses = self.losses(weights, batch, dropout)
            (gradient,) = torch.autograd.grad(losses.sum(), weights)
        state.loss += losses.detach()
        adam_step(state, gradient, s.clip)

    def losses(
        self, weights: Float[Tensor, "r p"], batch: Batch, dropout: Dropout | None = None
    ) -> Float[Tensor, " r"]:
        """Return the loss of each run: the mean smoothed objective of its tasks."""
        points, centers = batch
        for depth in range(self.settings.n_unrolled):
            centers = self.layer(weights, points, centers, dropout, depth)
        lambdas = self.temperatures[:, None, None, None]
        return smoothed_objective(points, centers, lambdas, self.settings.smoothing).mean(dim=1)

    @torch.no_grad()
    def next_losses(self) -> Float[Tensor, " r"]:
        """Return the loss of each run on the tasks of the next step, without dropout."""
        batch = self._draw(self.seeds, self.state.step, self.settings.batch_size)
        return self.losses(self.state.weights, batch)

    @torch.no_grad()
    def evaluate(self) -> None:
        """Compare the validation tasks of each run with Lloyd's steps; set the learning rates."""
        parts = [
            relative_objective(points, self._unrolled(points, centers), reference)
            for points, centers, reference in self._chunks()
        ]
        self.measured.copy_(torch.cat(parts, dim=1).mean(dim=1))
        update_learning_rate(self.state, self.measured, self.settings)

    def _unrolled(self, points: Tensor, centers: Tensor) -> Tensor:
        for _ in range(self.settings.n_unrolled):
            centers = self.layer(self.state.weights, points, centers)
        return centers

    def _draw(self, seeds: Tensor, step: Tensor, size: int) -> Batch:
        points, centers = self.settings.tasks.draw(self.families, seeds, step, size)
        return Batch(points.to(self.dtype), centers.to(self.dtype))

    @torch.no_grad()
    def _validation(self) -> tuple[Tensor, Tensor, Tensor]:
        """Fixed tasks of each run, with the objective after `n_unrolled` Lloyd steps."""
        zero = torch.zeros((), dtype=torch.int64, device=self.device)
        seeds = stream_keys(self.seeds, "validation", zero)
        points, centers = self._draw(seeds, zero, self.settings.n_validation)
        reference = lloyd_path(points, centers, seeds, self.settings.n_unrolled)[-1]
        return points, centers, smoothed_objective(points, reference, smoothing="exact")

    def _chunks(self) -> list[tuple[Tensor, ...]]:
        points = self.validation[0]
        runs, _, n, _ = points.shape
        size = max(1, _CELLS // (runs * n * n))
        return list(
            zip(*(torch.split(whole, size, dim=1) for whole in self.validation), strict=True)
        )


def make_trainer(settings: Settings, runs: Sequence[Run], device: str | torch.device) -> Trainer:
    """Return a trainer of these runs on a device; raises `ValueError` if there are no runs."""
    if not runs:
        raise ValueError("runs: found none; pass at least one lf.learning.Run()")
    return Trainer(settings, tuple(runs), torch.device(device))
