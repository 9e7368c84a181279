"""Matrices as text, one string for each row, which keeps JSON files small."""

import torch
from jaxtyping import Float
from torch import Tensor


def written(matrix: Float[Tensor, "m n"], digits: int = 3) -> list[str]:
    """Each row as text, with `digits` significant digits."""
    return [" ".join(f"{v:.{digits}g}" for v in row) for row in matrix.detach().cpu().tolist()]


def read(rows: list[str]) -> Float[Tensor, "m n"]:
    """The matrix from the output of `written`, in float64."""
    numbers = [[float(v) for v in row.split()] for row in rows]
    return torch.tensor(numbers, dtype=torch.float64)
