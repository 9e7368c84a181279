"""Matrices in a JSON file that stays small: a row is a line of numbers."""

import torch
from jaxtyping import Float
from torch import Tensor


def written(matrix: Float[Tensor, "m n"], digits: int = 3) -> list[str]:
    """Each row as text, to so many digits."""
    return [" ".join(f"{v:.{digits}g}" for v in row) for row in matrix.detach().cpu().tolist()]


def read(rows: list[str]) -> Float[Tensor, "m n"]:
    """What `written` gave."""
    numbers = [[float(v) for v in row.split()] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)
