"""Weights of rows, checked as scikit-learn checks them."""

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import check_array


def checked_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """One weight for each row, in float64, at least one of them above 0."""
    weights = nonnegative_weights(sample_weight, n_rows)
    if not weights.any():
        raise ValueError("sample_weight: found only zeros; pass at least one non-zero weight")
    return weights


def nonnegative_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """One weight for each row, in float64; a number stands for the same weight everywhere."""
    if isinstance(sample_weight, Number):
        sample_weight = np.full(n_rows, sample_weight)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight",
        ensure_min_samples=min(n_rows, 1),
    )  # fmt: skip
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight: found shape {weights.shape}; pass one weight for each of the "
            f"{n_rows} rows of X"
        )
    if (negative := np.flatnonzero(weights < 0)).size:
        row = negative[0]
        raise ValueError(
            f"sample_weight: found the negative weight {weights[row]} in row {row}; "
            "pass weights of at least 0"
        )
    return weights
