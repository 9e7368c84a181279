"""Training of symmetric layers: many runs together on the same tasks, from a seed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.learning.captured import captured
from lloydformer.learning.draws import keys, uniform
from lloydformer.learning.optimiser import State, descend
from lloydformer.learning.symmetric.beginning import stacked
from lloydformer.learning.symmetric.layer import SymmetricLayer
from lloydformer.learning.symmetric.numbers import Numbers
from lloydformer.learning.symmetric.program import above_start, losses, spreads
from lloydformer.learning.symmetric.settings import Shape, SymmetricRun, SymmetricSettings
from lloydformer.learning.symmetric.varied import Problems, Varied

_STARTS = 4
"""From so many starts Lloyd's algorithm shows how much a task depends on the start."""

Heard = tuple[int, tuple[float, ...]]
"""After how many updates, and each run's mean loss since the last time."""


@dataclass
class SymmetricProgram:
    """Runs that are trained together; `step` reads and writes `state` and nothing else."""

    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    device: torch.device

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs: found none; pass at least one SymmetricRun()")
        most = max(run.n_heads for run in self.runs)
        self.layer = SymmetricLayer(Numbers(most, self.settings.n_apart))
        first, present = stacked(self.layer.numbers, self.runs)
        self.present = present.to(self.device)
        self.state = State.begin(first.to(self.device), 0.0)
        self.seed = torch.tensor([self.settings.seed], device=self.device)
        self.rates, self.evenness, self.bounded = (
            torch.tensor([float(getattr(run, name)) for run in self.runs], device=self.device)
            for name in ("learning_rate", "evenness", "bounded")
        )

    def step(self, shape: Shape) -> None:
        """Draw tasks of a shape, take the gradient of the loss, descend."""
        state = self.state
        problems = Varied(shape.n_features).draw(self.seed, state.step, shape[:3])
        share = self._shares(problems)
        weights = state.weights.detach().requires_grad_()
        with torch.enable_grad():
            each = self._losses(weights, problems, shape.n_steps) * share
            (gradient,) = torch.autograd.grad(each.sum(), weights)
        state.loss += each.detach().sum(dim=0)
        # a step of which a gradient is no number teaches nothing
        known = torch.nan_to_num(gradient * self.present, 0.0, 0.0, 0.0)
        descend(state, known, self.settings.clip)

    def _losses(
        self, weights: Float[Tensor, "r p"], problems: Problems, n_steps: int
    ) -> Float[Tensor, "b r"]:
        each = losses(self.layer, weights, problems, n_steps, self.settings.earlier)
        above = 2 * above_start(each / (1 + self.settings.earlier), problems)
        return torch.where(self.bounded > 0, -torch.nn.functional.softplus(-above) / 2, each)

    def _shares(self, problems: Problems) -> Float[Tensor, "b r"]:
        """What each task weighs for each run; together 1."""
        points, k = problems.points, problems.centers.shape[1]
        size, n, _ = points.shape
        u = uniform(keys(self.seed, "starts", self.state.step), size, _STARTS, n)[0]
        tasks = torch.arange(size, device=self.device)[:, None, None]
        spread = spreads(problems, points[tasks, u.topk(k, dim=-1).indices])
        share = spread[:, None] ** -self.evenness
        return share / share.sum(dim=0)


@dataclass(frozen=True)
class TrainedSymmetric:
    """What training came to."""

    settings: SymmetricSettings
    runs: tuple[SymmetricRun, ...]
    numbers: Numbers
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
    """Train several runs together; device: CUDA where there is one."""
    settings = settings or SymmetricSettings()
    device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    program = SymmetricProgram(settings, tuple(runs), device)
    steps = works(program)
    began, history = perf_counter(), list[Heard]()
    for update in range(settings.n_updates):
        program.state.rate.copy_(program.rates * settings.rate(update))
        steps[settings.shapes[update % len(settings.shapes)]]()
        if (update + 1) % settings.evaluate_every == 0 or update + 1 == settings.n_updates:
            history.append(_heard(program.state, update + 1, settings.evaluate_every))
            if callback:
                callback(history[-1])
    weights = program.state.weights.detach().cpu()
    return TrainedSymmetric(settings, program.runs, program.layer.numbers, weights,
                            tuple(history), perf_counter() - began)  # fmt: skip


def works(program: SymmetricProgram) -> dict[Shape, Callable[[], None]]:
    """The step of each shape, on CUDA recorded as a graph; the state is as before."""
    found: dict[Shape, Callable[[], None]] = {
        shape: partial(program.step, shape) for shape in program.settings.shapes
    }
    if program.device.type == "cuda":
        before = {name: t.clone() for name, t in program.state.tensors().items()}
        found = dict(zip(found, captured(*found.values()), strict=True))
        program.state.assign(before)
    return found


def _heard(state: State, update: int, every: int) -> Heard:
    n = (update - 1) % every + 1
    loss = tuple((state.loss / n).tolist())
    state.loss.zero_()
    return update, loss
