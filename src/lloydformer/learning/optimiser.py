"""Adam and learning rate schedules for stacked runs; each run has its own learning rate."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.settings import Settings

# The defaults of torch.optim.Adam, and of ReduceLROnPlateau for the relative decrease that counts
# as an improvement. Torch's own classes are not used: Adam would need a group of parameters for
# each run, and ReduceLROnPlateau decides on the host, which a CUDA graph cannot.
_DECAYS = (0.9, 0.999)
_EPSILON = 1e-8
_IMPROVEMENT = 1e-4


@dataclass
class TrainingState:
    """Everything that training changes; one row for each run.

    The field names are the tensor names in checkpoints.

    Attributes
    ----------
    weights : Tensor of shape (r, p)
        Weights of each run.
    first, second : Tensor of shape (r, p)
        Adam's running means of the gradient and of its square.
    rate : Tensor of shape (r,)
        Learning rate.
    best : Tensor of shape (r,)
        Validation at the last improvement; smaller decreases (below `_IMPROVEMENT`) do not count.
    waited : Tensor of shape (r,)
        Evaluations since the last improvement, or since the rate was last halved.
    loss : Tensor of shape (r,)
        Sum of the losses since the last evaluation.
    step : Tensor of shape ()
        Number of training steps done.
    """

    weights: Float[Tensor, "r p"]
    first: Float[Tensor, "r p"]
    second: Float[Tensor, "r p"]
    rate: Float[Tensor, " r"]
    best: Float[Tensor, " r"]
    waited: Int[Tensor, " r"]
    loss: Float[Tensor, " r"]
    step: Int[Tensor, ""]

    @classmethod
    def begin(cls, weights: Float[Tensor, "r p"], learning_rate: float) -> "TrainingState":
        """Return the state before the first step."""
        runs = torch.zeros_like(weights[:, 0])
        return cls(
            weights=weights,
            first=torch.zeros_like(weights),
            second=torch.zeros_like(weights),
            rate=runs + learning_rate,
            best=runs + math.inf,
            waited=torch.zeros_like(runs, dtype=torch.int64),
            loss=runs.clone(),
            step=torch.zeros((), dtype=torch.int64, device=weights.device),
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors by name, not copied."""
        return dict(vars(self))

    def assign(self, tensors: dict[str, Tensor]) -> None:
        """Copy values into the existing tensors, whose addresses a captured CUDA graph keeps."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])


def adam_step(state: TrainingState, gradient: Float[Tensor, "r p"], clip: float | None) -> None:
    r"""Do one step of Adam (Kingma and Ba, 2015) for every run, in place.

    $w \leftarrow w - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$. `clip`: upper bound of the norm
    of each run's gradient, or None.
    """
    if clip is not None:
        norm = gradient.norm(dim=1, keepdim=True)
        gradient = gradient * (clip / norm.clamp(min=clip))
    state.step += 1
    first, second = _DECAYS
    state.first.lerp_(gradient, 1 - first)
    state.second.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    # In float64: 1 - 0.999^t is a small difference of numbers near 1 at first, and float32 would
    # lose half of its digits.
    time = state.step.to(torch.float64)
    root = (state.second / (1 - second**time).to(gradient)).sqrt_().add_(_EPSILON)
    rate = state.rate / (1 - first**time).to(gradient)
    state.weights.sub_(rate[:, None] * state.first / root)


def update_learning_rate(
    state: TrainingState, validation: Float[Tensor, " r"], settings: Settings
) -> None:
    """Set the learning rates after an evaluation, in place, by `settings.schedule`."""
    # No branch on the values: the decisions stay on the device, inside a CUDA graph.
    better = validation < state.best * (1 - _IMPROVEMENT)
    state.waited.add_(1).masked_fill_(better, 0)
    state.best.copy_(torch.where(better, validation, state.best))
    if settings.schedule == "plateau":
        # torch's ReduceLROnPlateau waits for one evaluation more: it compares by `>`.
        stalled = state.waited >= settings.patience
        state.rate.mul_(1 - 0.5 * stalled.to(state.rate))
        state.waited.masked_fill_(stalled, 0)
    if settings.schedule == "cosine":
        part = (state.step.to(torch.float64) / settings.n_steps).clamp(max=1)
        state.rate.copy_(settings.learning_rate * (1 + torch.cos(math.pi * part)) / 2)
