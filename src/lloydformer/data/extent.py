"""How far the data reach, column by column, found in one pass over them."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

_ROWS = 1 << 16
_LINES = 1 << 10


def extent(points: Float[Tensor, "n d"]) -> Float[Tensor, "2 d"]:
    """The smallest and the largest value of each column; NaN where the column has one."""
    if points.device.type != "cpu":
        return torch.stack([points.amin(dim=0), points.amax(dim=0)])
    array = points.detach().numpy()  # on a busy machine torch's threads wait for each other
    ends = np.stack([_ends(array[i : i + _ROWS]) for i in range(0, len(array), _ROWS)])
    return torch.from_numpy(np.stack([ends[:, 0].min(axis=0), ends[:, 1].max(axis=0)]))


def _ends(part: np.ndarray) -> np.ndarray:
    width = part.shape[1]
    if len(part) == _ROWS and part.flags.c_contiguous:  # long lines are compared far faster
        lines = part.reshape(_LINES, -1)
        part = np.concatenate([lines.min(axis=0), lines.max(axis=0)]).reshape(-1, width)
    return np.stack([part.min(axis=0), part.max(axis=0)])
