"""Adam, and the learning rate, for runs that are stacked: each has a rate of its own."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from lloydformer.learning.settings import Settings

_DECAYS = (0.9, 0.999)
_EPSILON = 1e-8
_BETTER = 1e-4
"""A validation counts as improved if it is lower by this part, as in torch's plateau rule."""


@dataclass
class State:
    """Everything that training changes; one row for each run."""

    weights: Float[Tensor, "r p"]
    first: Float[Tensor, "r p"]
    second: Float[Tensor, "r p"]
    rate: Float[Tensor, " r"]
    best: Float[Tensor, " r"]
    waited: Int[Tensor, " r"]
    loss: Float[Tensor, " r"]
    """The sum of the losses since the last evaluation."""
    step: Int[Tensor, ""]

    @classmethod
    def begin(cls, weights: Float[Tensor, "r p"], learning_rate: float) -> "State":
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
        return dict(vars(self))

    def assign(self, tensors: dict[str, Tensor]) -> None:
        """Other values in the same places, which a captured graph holds on to."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])


def descend(state: State, gradient: Float[Tensor, "r p"], clip: float | None) -> None:
    r"""One step of Adam (Kingma and Ba, 2015), in place, for every run.

    $w \leftarrow w - \eta\, \hat m / (\sqrt{\hat v} + \epsilon)$.
    """
    if clip is not None:
        norm = gradient.norm(dim=1, keepdim=True)
        gradient = gradient * (clip / norm.clamp(min=clip))
    state.step += 1
    first, second = _DECAYS
    state.first.lerp_(gradient, 1 - first)
    state.second.mul_(second).addcmul_(gradient, gradient, value=1 - second)
    time = state.step.to(torch.float64)
    root = (state.second / (1 - second**time).to(gradient)).sqrt_().add_(_EPSILON)
    rate = state.rate / (1 - first**time).to(gradient)
    state.weights.sub_(rate[:, None] * state.first / root)


def judge(state: State, validation: Float[Tensor, " r"], settings: Settings) -> None:
    """The learning rate after an evaluation, in place."""
    better = validation < state.best * (1 - _BETTER)
    state.waited.add_(1).masked_fill_(better, 0)
    state.best.copy_(torch.where(better, validation, state.best))
    if settings.schedule == "plateau":
        tired = state.waited >= settings.patience
        state.rate.mul_(1 - 0.5 * tired.to(state.rate))
        state.waited.masked_fill_(tired, 0)
    if settings.schedule == "cosine":
        part = (state.step.to(torch.float64) / settings.n_steps).clamp(max=1)
        state.rate.copy_(settings.learning_rate * (1 + torch.cos(math.pi * part)) / 2)
