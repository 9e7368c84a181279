"""Training of symmetric layers: many runs together, on the same tasks.

In order: the initial weights, a soft Lloyd step whose heads differ in sharpness; the loss, log
objectives along unrolled steps; the trainer.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.optimiser import TrainingState, adam_step
from lloydformer.learning.random_numbers import stream_keys, uniform
from lloydformer.learning.symmetric.layer import (
    INVARIANTS,
    Frame,
    NumberLayout,
    SymmetricLayer,
    distances_by_product,
    two_nearest,
)
from lloydformer.learning.symmetric.settings import Shape, SymmetricRun, SymmetricSettings
from lloydformer.learning.symmetric.varied_tasks import SharedBatch, draw_varied_tasks
from lloydformer.learning.trainer import capture_graphs
from lloydformer.numerics.clusters import means_or

# Constants of training, all chosen by hand.
#
# Deviation of the noise of initial weights, which makes heads and runs differ.
_NOISE = 0.1
# Inverse temperatures of the softest and the sharpest head, in units of the mean squared distance.
_SHARPNESS = (0.7, 12.0)
# Added to the objective before the logarithm: it is 0 where every point is a center.
_FLOOR = 1e-4
# Added to the deviation of Lloyd's results: it is 0 where all starts give the same result.
_SPREAD = 0.01
# Starts of Lloyd's algorithm that measure how much the result of a task depends on the start, and
# the steps of each.
_STARTS = 4
_LLOYD = 10


def head_mask(numbers: NumberLayout, n_heads: int) -> Float[Tensor, " p"]:
    """Return 1 for the weights of the first n_heads heads, 0 for those of the other heads."""
    has = (torch.arange(numbers.n_heads) < n_heads).float()
    mask = torch.ones(numbers.count)
    for name, size in numbers.sizes.items():
        if name == "belonging":
            mask[numbers.rows(name)] = torch.outer(has, has).flatten()
        elif size == numbers.n_heads and not name.startswith("apart"):
            mask[numbers.rows(name)] = has
    return mask[:, None].expand(-1, len(INVARIANTS)).flatten()


def initial_weights(numbers: NumberLayout, run: SymmetricRun) -> Float[Tensor, " p"]:
    """Return the weights of a soft Lloyd step with noise, independent of the invariants."""
    generator = torch.Generator().manual_seed(run.seed)
    constant = _NOISE * torch.randn(numbers.count, generator=generator)
    soft, sharp = map(math.log, _SHARPNESS)
    heads = torch.linspace(soft, sharp, run.n_heads) if run.n_heads > 1 else (soft + sharp) / 2
    constant[numbers.rows("sharpness")][: run.n_heads] = heads
    # soft-max over the points of log p: the mean with weights p, as in soft k-means
    constant[numbers.rows("log_belonging")] += 1.0
    constant[numbers.rows("stride")] = 1 / run.n_heads
    constant[numbers.rows("apart_sharpness")] += torch.linspace(1.0, 3.0, numbers.n_apart)
    constant[numbers.rows("apart")] = 0.0  # no repulsion at first
    weights = torch.zeros(numbers.count, len(INVARIANTS))
    weights[:, INVARIANTS.index("one")] = constant
    return weights.flatten() * head_mask(numbers, run.n_heads)


def weights_of_heads(
    weights: Float[Tensor, " p"], numbers: NumberLayout, n_heads: int
) -> Float[Tensor, " q"]:
    """Return the weights of the first n_heads heads, for a layer that has only these."""
    return weights[head_mask(numbers, n_heads) > 0]


def step_times(n_steps: int) -> list[float]:
    """Return the invariant `time` of each step: from 0 to 1."""
    return [t / max(1, n_steps - 1) for t in range(n_steps)]


def log_objective(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r"]:
    """Return the log of the mean squared distance to the nearest center plus a small floor."""
    return (distances_by_product(points, centers).min(dim=2).values.mean(dim=-1) + _FLOOR).log()


def to_frame(batch: SharedBatch) -> SharedBatch:
    """Return the tasks in the coordinates of their `Frame`, in which all of training happens."""
    frame = Frame.of(batch.points)
    return SharedBatch(frame.inside(batch.points), frame.inside(batch.centers))


def losses(
    layer: SymmetricLayer,
    weights: Float[Tensor, "r p"],
    batch: SharedBatch,
    n_steps: int,
    earlier: float = 0.2,
) -> Float[Tensor, "b r"]:
    """Return the log objective after the last step plus `earlier` times the mean of the others."""
    centers = batch.centers.unsqueeze(1).expand(-1, len(weights), -1, -1)
    parts = []
    for time in step_times(n_steps):
        centers = layer(weights, batch.points, centers, time)
        parts.append(log_objective(batch.points, centers))
    return parts[-1] + earlier * torch.stack(parts[:-1]).mean(dim=0)


@torch.no_grad()
def spreads(
    points: Float[Tensor, "b n d"], u: Float[Tensor, "b s n"], k: int
) -> Float[Tensor, " b"]:
    """Return how much Lloyd's result depends on the start: the deviation of its log objective.

    `u`: random numbers; those of a start choose its centers among the points.
    """
    tasks = torch.arange(len(points), device=points.device)[:, None, None]
    centers = points[tasks, u.topk(k, dim=-1).indices]  # (b, s, k, d)
    for _ in range(_LLOYD):
        centers = lloyd_keeping_empty(points, centers)
    return log_objective(points, centers).std(dim=1) + _SPREAD


def lloyd_keeping_empty(
    points: Float[Tensor, "b n d"], centers: Float[Tensor, "b r k d"]
) -> Float[Tensor, "b r k d"]:
    """Do one step of Lloyd's algorithm; the center of an empty cluster stays."""
    own = two_nearest(distances_by_product(points, centers)).own  # (b, r, k, n)
    sums = (own.flatten(1, 2) @ points).view(*own.shape[:3], -1)
    return means_or(sums, own.sum(dim=-1), centers)


class UpdateLosses(NamedTuple):
    """The number of updates done, and the mean loss of each run since the last report."""

    update: int
    losses: tuple[float, ...]


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
        numbers = NumberLayout(most, self.settings.n_apart)
        self.layer = SymmetricLayer(numbers)
        first = torch.stack([initial_weights(numbers, run) for run in self.runs])
        self.state = TrainingState.begin(first.to(self.device), 0.0)
        # 1 for weights that training may change: those of a run's own heads and invariants
        heads = torch.stack([head_mask(numbers, run.n_heads) for run in self.runs])
        used = [[float(name != run.without) for name in INVARIANTS] for run in self.runs]
        self.trainable = (heads * torch.tensor(used).repeat(1, numbers.count)).to(self.device)
        self.seed = torch.tensor([self.settings.seed], device=self.device)
        self.rates, self.evenness, self.bounded = (
            torch.tensor([float(getattr(run, name)) for run in self.runs], device=self.device)
            for name in ("learning_rate", "evenness", "bounded")
        )

    def step(self, shape: Shape) -> None:
        """Draw tasks of a shape, compute the gradient of the loss, and update the weights."""
        state, earlier = self.state, self.settings.earlier
        tasks = draw_varied_tasks(self.seed, state.step, shape[:3], shape.n_features)
        batch = to_frame(tasks)
        keys = stream_keys(self.seed, "starts", state.step)
        u = uniform(keys, shape.n_tasks, _STARTS, shape.n_points)[0]
        # the weight of each task for each run; they sum to 1 over the tasks
        share = spreads(batch.points, u, shape.n_clusters)[:, None] ** -self.evenness
        share = share / share.sum(dim=0)
        start = log_objective(batch.points, batch.centers.unsqueeze(1))
        weights = state.weights.detach().requires_grad_()
        with torch.enable_grad():
            plain = losses(self.layer, weights, batch, shape.n_steps, earlier)
            # `plain` is about 1 + earlier log objectives. The bounded loss levels off at 0, so a
            # task that ends above its start counts the less, the farther above.
            above = 2 * (plain / (1 + earlier) - start)
            bounded = -torch.nn.functional.softplus(-above) / 2
            each = torch.where(self.bounded > 0, bounded, plain) * share
            (gradient,) = torch.autograd.grad(each.sum(), weights)
        state.loss += each.detach().sum(dim=0)
        # gradients that are not finite are ignored
        finite = torch.nan_to_num(gradient * self.trainable, 0.0, 0.0, 0.0)
        adam_step(state, finite, self.settings.clip)


@dataclass(frozen=True)
class TrainedSymmetric:
    """The result of training: weights (r, p), and the mean losses during training."""

    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    numbers: NumberLayout
    weights: Float[Tensor, "r p"]
    history: tuple[UpdateLosses, ...]
    seconds: float


def train_symmetric(
    settings: SymmetricSettings | None = None,
    runs: Sequence[SymmetricRun] = (SymmetricRun(),),
    *,
    device: str | torch.device | None = None,
    callback: Callable[[UpdateLosses], None] | None = None,
) -> TrainedSymmetric:
    """Train several runs together.

    `device`: by default CUDA if available, else the CPU. `callback`: called every
    `evaluate_every` updates, and after the last.
    """
    settings = settings or SymmetricSettings()
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    trainer = SymmetricTrainer(settings, tuple(runs), device)
    state, shapes = trainer.state, settings.shapes
    steps: dict[Shape, Callable[[], None]] = {s: partial(trainer.step, s) for s in shapes}
    if device.type == "cuda":
        steps = dict(zip(steps, capture_graphs(state, *steps.values()), strict=True))
    began, history = perf_counter(), list[UpdateLosses]()
    for update in range(1, settings.n_updates + 1):
        state.rate.copy_(trainer.rates * settings.rate(update - 1))
        steps[shapes[(update - 1) % len(shapes)]]()
        if update % settings.evaluate_every == 0 or update == settings.n_updates:
            since = (update - 1) % settings.evaluate_every + 1
            history.append(UpdateLosses(update, tuple((state.loss / since).tolist())))
            state.loss.zero_()
            if callback:
                callback(history[-1])
    return TrainedSymmetric(
        settings,
        trainer.runs,
        trainer.layer.numbers,
        state.weights.detach().cpu(),
        tuple(history),
        perf_counter() - began,
    )
