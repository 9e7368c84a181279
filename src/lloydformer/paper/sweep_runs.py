"""One run of the parameter sweep: soft k-means and Lloyd's algorithm from the same start."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.data.blocks import LEAF, TensorBlocks
from lloydformer.engines import choose
from lloydformer.engines.contract import State
from lloydformer.paper.sweep_settings import GAMMAS, Setting
from lloydformer.plans.assign import Measure
from lloydformer.plans.contract import Plan, Run
from lloydformer.plans.lower import lower

N_STEPS = 10
VARIANCE = 0.01
_GPU_LEAF = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """Of one data set: the Loss for each gamma, and how far apart two points are on average.

    A Loss is the log objective of soft k-means minus that of Lloyd's after ten steps; None where
    Lloyd's algorithm loses a cluster, for then its mean is 0/0. apart is squared, at scale 1.
    """

    losses: list[float | None]
    apart: float


def outcome(setting: Setting, seed: int, device: str = "cpu") -> Outcome:
    """Draw the data and run Lloyd's once and soft k-means for each gamma, from the same start.

    The authors' circuit takes both self-attentions as the identity and the decoder's
    cross-attention as linear, which is `soft(gamma)`, lowered.
    """
    points, centers = draw(setting, seed, device)
    apart = 2 * points.var(dim=0, correction=0).sum().item() / setting.scale**2
    leaf = LEAF if points.device.type == "cpu" else _GPU_LEAF
    data = TensorBlocks(points, leaf=leaf)
    with choose("auto").over(data, State.of(data)) as run:
        placed = data.place(centers)
        lloyd = _log_objective(lower(recipes.lloyd()), run, placed, data.dtype)
        softly = [
            _log_objective(lower(recipes.soft(float(gamma))), run, placed, data.dtype)
            for gamma in GAMMAS
        ]
    return Outcome([_rounded(soft, lloyd) for soft in softly], round(apart, 5))


def draw(
    setting: Setting, seed: int, device: str = "cpu"
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k d"]]:
    """The data of a setting, and k of the points as initial centers."""
    return mixture(setting, torch.Generator(device).manual_seed(_number(setting, seed)))


def mixture(
    setting: Setting, generator: torch.Generator
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k d"]]:
    """As many Gaussians as clusters, of the same size; columns from 0 to the scale; k points.

    Locations are uniform in [0, 1]^d and every variance is 0.01 before the columns are scaled.
    Numbers are float32, as the authors'.
    """
    k, d, each = setting.clusters, setting.dimensions, setting.points // setting.clusters
    device = generator.device
    at = torch.rand(k, 1, d, generator=generator, device=device)
    noise = torch.randn(k, each, d, generator=generator, device=device)
    points = (at + VARIANCE**0.5 * noise).reshape(k * each, d)
    low, high = points.aminmax(dim=0)
    points = (points - low) / (high - low) * setting.scale
    chosen = torch.randperm(len(points), generator=generator, device=device)[:k]
    return points, points[chosen]


def _number(setting: Setting, seed: int) -> int:
    """A seed of its own for every setting."""
    return int(np.random.SeedSequence([seed, *setting.levels]).generate_state(1, np.uint64)[0] >> 1)


def _log_objective(plan: Plan, run: Run, centers: Tensor, dtype: torch.dtype) -> float | None:
    """The log objective after the last step; None if a cluster has lost its points."""
    for number in range(N_STEPS):
        step = plan.step(run, centers.to(dtype), number)
        if bool((step.masses == 0).any()):
            return None
        centers = plan.place(step, centers)
    return float(torch.log(run(Measure(centers.to(dtype)))[0]))


def _rounded(soft: float | None, lloyd: float | None) -> float | None:
    """The difference to six digits, which is what float32 leaves of it."""
    return None if soft is None or lloyd is None else round(soft - lloyd, 6)
