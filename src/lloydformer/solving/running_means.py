"""Centers that are running means: what a batch of rows makes of them."""

import numpy as np
import torch
from torch import Tensor

from lloydformer.plans.contract import Sums, moved


def merged(
    update: Sums, centers: Tensor, counts: Tensor, *, directions: bool, unit: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Centers (k, d) and the weights that they stand for (k,), in float64, after a batch.

    Where the batch weighs nothing beside the rows before it, the center stays. `unit`: that of the
    masses in `update`; `counts` are in units of 1.
    """
    before, level = _leveled(counts / unit)
    both = Sums(
        update.sums / level[:, None] + before[:, None] * centers, update.masses / level + before
    )
    new = moved(both, centers, directions)
    weights = both.sums.norm(dim=1) if directions else both.masses
    met = (update.masses > 0) & before.isfinite()
    grown_counts = torch.where(met, weights * (unit * level), counts)
    if not bool(grown_counts.isfinite().all()):
        raise ValueError(
            "sample_weight: the weights of all rows so far sum to more than float64 can hold; "
            "divide them by a constant, in every batch"
        )
    return torch.where(met[:, None], new, centers), grown_counts


def _leveled(masses: Tensor) -> tuple[Tensor, Tensor]:
    """Masses over powers of two, so that none is above 2, and these powers, at least 1."""
    exponents = np.frexp(masses.cpu().numpy())[1] - 1
    level = torch.from_numpy(np.ldexp(1.0, np.maximum(exponents, 0))).to(masses)
    return masses / level, level
