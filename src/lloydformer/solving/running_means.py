"""Centers that are running means: what a batch of rows makes of them."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lloydformer.plans.contract import Sums


def merged(
    update: Sums, centers: Tensor, counts: Tensor, *, directions: bool, unit: float = 1.0
) -> tuple[Tensor, Tensor]:
    """Centers (k, d) and the weights that they stand for (k,), in float64, after a batch.

    Where the batch weighs nothing beside the rows before it, the center stays. `unit`: that of the
    masses in `update`; `counts` are in units of 1.
    """
    parts = (update.sums, update.masses, centers, counts)
    sums, masses, old, so_far = (part.cpu().numpy() for part in parts)  # faster than torch on k d
    with np.errstate(all="ignore"):  # what is not finite is replaced below
        before, level = _leveled(so_far / unit)
        both = sums / level[:, None] + before[:, None] * old
        weights = _lengths(both) if directions else masses / level + before
        met = (masses > 0) & np.isfinite(before)
        moves = met & (weights > 0)
        new = np.where(moves[:, None], both / weights[:, None], old)
        grown = np.where(met, weights * (unit * level), so_far)
    if not np.isfinite(grown).all():
        raise ValueError(
            "sample_weight: the weights of all rows so far sum to more than float64 can hold; "
            "divide them by a constant, in every batch"
        )
    return torch.from_numpy(new).to(centers), torch.from_numpy(grown).to(counts)


def _lengths(rows: Float[np.ndarray, "k d"]) -> Float[np.ndarray, " k"]:
    return torch.from_numpy(rows).norm(dim=1).numpy()


def _leveled(
    masses: Float[np.ndarray, " k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Masses over powers of two, so that none is above 2, and these powers, at least 1."""
    exponents = np.frexp(masses)[1] - 1
    level = np.ldexp(1.0, np.maximum(exponents, 0))
    return masses / level, level
