"""The program of training: what happens in one step, and in one evaluation, to all runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.draws import keys
from lloydformer.learning.lloyd import lloyd_step
from lloydformer.learning.objective import relative_objective, smoothed_objective
from lloydformer.learning.optimiser import State, descend, judge
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.stacked import Drops, StackedLayer
from lloydformer.learning.tasks import Batch

_CELLS = 1 << 28
"""Scores of encoder self-attention that exist at a time in an evaluation."""


@dataclass
class Program:
    """Runs with the same settings, trained together in one batched program.

    `step` and `evaluate` read and write `state` and nothing else, so both can be captured in a
    graph, and a state that is put back continues as if nothing had happened.
    """

    settings: Settings
    runs: tuple[Run, ...]
    device: torch.device
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        s = self.settings
        self.layer = StackedLayer(s.recipe, s.n_features, s.n_clusters)
        self.families = tuple(run.family for run in self.runs)
        self.seeds = torch.tensor([run.seed for run in self.runs], device=self.device)
        lambdas = [run.loss_temperature for run in self.runs]
        self.temperatures = torch.tensor(lambdas, device=self.device, dtype=self.dtype)
        weights = self.layer.begin([run.seed for run in self.runs]).to(self.device, self.dtype)
        self.state = State.begin(weights, s.learning_rate)
        self.measured = torch.zeros_like(self.temperatures)
        self.validation = self._validation()

    def step(self) -> None:
        """Draw tasks, take the gradient of the loss, descend."""
        s, state = self.settings, self.state
        batch = self._drawn(self.seeds, state.step, s.batch_size)
        weights = state.weights.detach().requires_grad_()
        drops = Drops(self.seeds, state.step, s.dropout) if s.dropout else None
        with torch.enable_grad():
            losses = self.losses(weights, batch, drops)
            (gradient,) = torch.autograd.grad(losses.sum(), weights)
        state.loss += losses.detach()
        descend(state, gradient, s.clip)

    def losses(
        self, weights: Float[Tensor, "r p"], batch: Batch, drops: Drops | None = None
    ) -> Float[Tensor, " r"]:
        """The loss of each run: the mean smoothed objective of its tasks."""
        points, centers = batch
        for depth in range(self.settings.n_unrolled):
            centers = self.layer(weights, points, centers, drops, depth)
        lambdas = self.temperatures[:, None, None, None]
        return smoothed_objective(points, centers, lambdas, self.settings.smoothing).mean(dim=1)

    @torch.no_grad()
    def evaluate(self) -> None:
        """Measure each run's validation tasks against one Lloyd step, and set its rate."""
        parts = [
            relative_objective(points, self._unrolled(points, centers), reference)
            for points, centers, reference in self._chunks()
        ]
        self.measured.copy_(torch.cat(parts, dim=1).mean(dim=1))
        judge(self.state, self.measured, self.settings)

    def _unrolled(self, points: Tensor, centers: Tensor) -> Tensor:
        for _ in range(self.settings.n_unrolled):
            centers = self.layer(self.state.weights, points, centers)
        return centers

    def _drawn(self, seeds: Tensor, step: Tensor, size: int) -> Batch:
        points, centers = self.settings.tasks.draw(self.families, seeds, step, size)
        return Batch(points.to(self.dtype), centers.to(self.dtype))

    @torch.no_grad()
    def _validation(self) -> tuple[Tensor, Tensor, Tensor]:
        """Fixed tasks for each run, with the objective after as many Lloyd steps as unrolled."""
        never = torch.zeros((), dtype=torch.int64, device=self.device)
        seeds = keys(self.seeds, "validation", never)
        points, centers = self._drawn(seeds, never, self.settings.n_validation)
        reference = centers
        for number in range(self.settings.n_unrolled):
            reference = lloyd_step(points, reference, seeds, never + number)
        return points, centers, smoothed_objective(points, reference, smoothing="exact")

    def _chunks(self) -> list[tuple[Tensor, ...]]:
        points = self.validation[0]
        runs, _, n, _ = points.shape
        size = max(1, _CELLS // (runs * n * n))
        return list(
            zip(*(torch.split(whole, size, dim=1) for whole in self.validation), strict=True)
        )


def stack(settings: Settings, runs: Sequence[Run], device: str | torch.device) -> Program:
    """A program of these runs on a device."""
    if not runs:
        raise ValueError("runs: found none; pass at least one lf.learning.Run()")
    return Program(settings, tuple(runs), torch.device(device))
