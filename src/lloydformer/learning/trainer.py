"""One training step and one evaluation for many runs at once, captured as CUDA graphs on a GPU."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.initial_weights import initial_weights
from lloydformer.learning.lloyd import lloyd_path
from lloydformer.learning.objective import relative_objective, smoothed_objective
from lloydformer.learning.optimiser import TrainingState, adam_step, update_learning_rate
from lloydformer.learning.random_numbers import Dropout, stream_keys
from lloydformer.learning.settings import Run, Settings
from lloydformer.learning.tasks import Batch

# Upper bound of the encoder self-attention scores in memory at a time, in an evaluation: 1 GiB in
# float32. The paper's 320 validation tasks of 512 points are one batch for up to three runs.
_CELLS = 1 << 28

# Runs of a function before it is captured: torch requires some on a side stream, in which libraries
# set themselves up. Its documentation has three; two were chosen by hand.
_WARM_UPS = 2


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


class Trainer:
    """Runs with the same settings, trained together in one batch.

    `step` and `evaluate` read and write `state`, and `evaluate` also writes `measured`; nothing
    else changes. So both can be captured as CUDA graphs, and training continues exactly from a
    restored state.

    Parameters
    ----------
    settings : Settings
        Settings of all runs.
    runs : sequence of Run
        The runs, at least one.
    device : str or torch.device
        Where they are trained.
    dtype : torch.dtype, default=torch.float32
        Precision of weights and tasks.
    """

    def __init__(
        self,
        settings: Settings,
        runs: Sequence[Run],
        device: str | torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        self.settings, self.layer = settings, settings.layer
        self.device, self.dtype = torch.device(device), dtype
        self.families = tuple(run.family for run in runs)
        self.seeds = torch.tensor([run.seed for run in runs], device=self.device)
        lambdas = [run.loss_temperature for run in runs]
        self.temperatures = torch.tensor(lambdas, device=self.device, dtype=dtype)
        weights = initial_weights(settings, runs).to(self.device, dtype)
        self.state = TrainingState.begin(weights, settings.learning_rate)
        self.measured = torch.zeros_like(self.temperatures)
        # Fixed tasks of each run, and their objective after as many of Lloyd's steps as the layer
        # is unrolled. The seeds are those of another stream: no training step draws these tasks.
        zero = torch.zeros((), dtype=torch.int64, device=self.device)
        seeds = stream_keys(self.seeds, "validation", zero)
        with torch.no_grad():
            points, centers = self.draw(seeds, zero, settings.n_validation)
            reference = lloyd_path(points, centers, seeds, settings.n_unrolled)[-1]
            objective = smoothed_objective(points, reference, smoothing="exact")
        self.validation = points, centers, objective
        self.run_step: Callable[[], None] = self.step
        self.run_evaluation: Callable[[], None] = self.evaluate

    def capture(self) -> None:
        """Replace `run_step` and `run_evaluation` by CUDA graphs, where that is possible.

        A training step is some hundreds of small kernels, and launching them one by one takes
        longer than running them. Graphs need a CUDA device, tasks that have the same shape in
        every step, and a layer that can be captured. The state stays as it was.
        """
        regular = self.settings.tasks.of_one_shape and self.layer.capturable
        if self.device.type == "cuda" and regular:
            (self.run_step,) = capture_graphs(self.state, self.step)
            (self.run_evaluation,) = capture_graphs(self.state, self.evaluate)

    def step(self) -> None:
        """Draw tasks, compute the gradient of the loss, and update the weights."""
        s, state = self.settings, self.state
        batch = self.draw(self.seeds, state.step, s.batch_size)
        weights = state.weights.detach().requires_grad_()
        probability = s.recipe.encoder_cross.dropout
        draws = self.layer.draws
        dropout = Dropout(self.seeds, state.step, probability) if draws else None
        with torch.enable_grad():
            losses = self.losses(weights, batch, dropout)
            # Runs share no weights, so the gradient of the sum is that of each run's own loss.
            (gradient,) = torch.autograd.grad(losses.sum(), weights)
        state.loss += losses.detach()
        adam_step(state, gradient, s.clip)

    def losses(
        self, weights: Float[Tensor, "r p"], batch: Batch, dropout: Dropout | None = None
    ) -> Float[Tensor, " r"]:
        """Return the loss of each run: the mean smoothed objective of its tasks."""
        centers = self._unroll(weights, batch, dropout)
        lambdas = self.temperatures[:, None, None, None]
        smoothing = self.settings.smoothing
        return smoothed_objective(batch.points, centers, lambdas, smoothing).mean(dim=1)

    @torch.no_grad()
    def evaluate(self) -> None:
        """Compare the validation tasks of each run with Lloyd's steps; set the learning rates."""
        runs, _, n, _ = self.validation[0].shape
        size = max(1, _CELLS // (runs * n * n))
        chunks = (torch.split(whole, size, dim=1) for whole in self.validation)
        parts = [
            relative_objective(
                points, self._unroll(self.state.weights, Batch(points, centers)), reference
            )
            for points, centers, reference in zip(*chunks, strict=True)
        ]
        self.measured.copy_(torch.cat(parts, dim=1).mean(dim=1))
        update_learning_rate(self.state, self.measured, self.settings)

    def draw(self, seeds: Tensor, step: Tensor, size: int) -> Batch:
        """Draw tasks of each run's family."""
        points, centers = self.settings.tasks.draw(self.families, seeds, step, size)
        return Batch(points.to(self.dtype), centers.to(self.dtype))

    def _unroll(
        self, weights: Tensor, batch: Batch, dropout: Dropout | None = None
    ) -> Float[Tensor, "r b k d"]:
        """Return the centers after `n_unrolled` applications of the layer."""
        points, centers = batch
        for depth in range(self.settings.n_unrolled):
            centers = self.layer(weights, points, centers, dropout, depth)
        return centers

    @torch.no_grad()
    def evaluate_first(self) -> Evaluation:
        """Evaluate before the first step; the loss is that of the tasks of the next one."""
        batch = self.draw(self.seeds, self.state.step, self.settings.batch_size)
        return self._report(self.losses(self.state.weights, batch))

    def advance(self) -> Evaluation:
        """Train until the next evaluation is due, then evaluate."""
        n_left = self.settings.n_steps - int(self.state.step)
        n_steps = min(self.settings.evaluate_every, n_left)
        for _ in range(n_steps):
            self.run_step()
        evaluation = self._report(self.state.loss / n_steps)
        self.state.loss.zero_()
        return evaluation

    def _report(self, loss: Float[Tensor, " r"]) -> Evaluation:
        """Evaluate, and return what was measured together with this loss."""
        rate = self.state.rate.tolist()  # before the evaluation sets that of the next steps
        self.run_evaluation()
        numbers = (tuple(n) for n in (loss.tolist(), self.measured.tolist(), rate))
        return Evaluation(int(self.state.step), self.settings.n_steps, *numbers)


def capture_graphs(
    state: TrainingState, *functions: Callable[[], None]
) -> list[Callable[[], None]]:
    """Capture each function as a CUDA graph; return the functions that replay them.

    Graphs captured in one call share a memory pool, so no two of them may run at the same time.
    Functions change nothing that matters but `state`, which is restored.
    """
    before = {name: tensor.clone() for name, tensor in state.tensors().items()}
    graphs: list[torch.cuda.CUDAGraph] = []
    for function in functions:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(_WARM_UPS):
                function()
        torch.cuda.current_stream().wait_stream(stream)
        pool = graphs[0].pool() if graphs else None
        graphs.append(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graphs[-1], pool=pool):
            function()
    state.assign(before)  # the warm-ups have trained
    return [graph.replay for graph in graphs]
