"""One run of the parameter sweep: soft k-means and Lloyd's algorithm from the same start."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.circuits import recipes
from lloydformer.data.blocks import TensorBlocks
from lloydformer.data.leaves import leaf_rows
from lloydformer.engines import choose
from lloydformer.paper.parameter_sweep.settings import GAMMAS, levels
from lloydformer.plans.assign import Measure
from lloydformer.plans.contract import Plan, Sums, moved
from lloydformer.plans.lower import lower
from lloydformer.plans.session import Session
from lloydformer.verify.mixture import MixtureSize, mixture

N_STEPS = 10


@dataclass(frozen=True)
class SweepOutcome:
    """The result of one data set.

    losses: for each gamma the log objective of soft k-means minus that of Lloyd's, after ten
    steps; None if Lloyd's algorithm loses a cluster, since its mean is then 0/0. apart: the mean
    squared distance of two points, at scale 1.
    """

    losses: list[float | None]
    apart: float


def outcome(size: MixtureSize, seed: int, device: str = "cpu") -> SweepOutcome:
    """Draw the data and run Lloyd's once and soft k-means for each gamma, from the same start.

    The authors took both self-attentions as the identity and the decoder's cross-attention as
    linear; this is the lowered recipe `soft(gamma)`.
    """
    points, centers = draw(size, seed, device)
    apart = 2 * points.var(dim=0, correction=0).sum().item() / size.scale**2
    data = TensorBlocks(points, leaf=leaf_rows(points.device, *centers.shape[::-1]))
    with choose("auto", data).open(data) as session:
        placed = data.layout.place(centers)
        lloyd = _log_objective(lower(recipes.lloyd()), session, placed)
        softly = [
            _log_objective(lower(recipes.soft(float(gamma))), session, placed) for gamma in GAMMAS
        ]
    return SweepOutcome([_rounded(soft, lloyd) for soft in softly], round(apart, 5))


def draw(
    size: MixtureSize, seed: int, device: str = "cpu"
) -> tuple[Float[Tensor, "n d"], Float[Tensor, "k d"]]:
    """The points of a data set, and k of them as initial centers."""
    return mixture(size, torch.Generator(device).manual_seed(_seed_of(size, seed)))


def _seed_of(size: MixtureSize, seed: int) -> int:
    """A different seed for every data set."""
    return int(np.random.SeedSequence([seed, *levels(size)]).generate_state(1, np.uint64)[0] >> 1)


def _log_objective(plan: Plan, session: Session, centers: Tensor) -> float | None:
    """The log objective after the last step; None if a cluster has no points."""
    dtype = session.layout.dtype
    for number in range(N_STEPS):
        update = plan.step(session, centers.to(dtype), number).update
        assert isinstance(update, Sums)
        if bool((update.masses == 0).any()):
            return None
        centers = moved(update, centers)
    return float(torch.log(session.fold(Measure(centers.to(dtype)))[0]))


def _rounded(soft: float | None, lloyd: float | None) -> float | None:
    """The difference to six decimals, the accuracy of float32."""
    return None if soft is None or lloyd is None else round(soft - lloyd, 6)
