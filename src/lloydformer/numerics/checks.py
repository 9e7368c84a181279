"""Checks of arguments; every error names the argument, what was found and what to do."""

import numpy as np
import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64)


def as_points(name: str, value: object) -> Tensor:
    """Return a finite float tensor of rows, (m, d) or (b, m, d), from a tensor or an array."""
    tensor = as_rows(name, value)
    check_finite(name, tensor)
    return tensor


def as_rows(name: str, value: object) -> Tensor:
    """`as_points` without a look at the values."""
    tensor = _as_tensor(name, value)
    if tensor.dtype not in FLOATS:
        raise ValueError(f"{name}: found dtype {tensor.dtype}; convert to float32 or float64 first")
    if tensor.ndim not in (2, 3) or 0 in tensor.shape:
        raise ValueError(
            f"{name}: found shape {tuple(tensor.shape)}; pass rows (m, d), or a batch (b, m, d), "
            "none of them empty"
        )
    return tensor


def check_finite(name: str, tensor: Tensor) -> None:
    """Raise `ValueError` if a value is NaN or infinite."""
    if tensor.device.type != "meta" and not torch.isfinite(tensor).all():
        raise ValueError(_not_finite(name, tensor))


def _as_tensor(name: str, value: object) -> Tensor:
    if isinstance(value, Tensor):
        return value
    try:
        return torch.tensor(np.asarray(value))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name}: found {type(value).__name__}, which is not an array of numbers ({error}); "
            "pass a tensor or an array"
        ) from None


def _not_finite(name: str, tensor: Tensor) -> str:
    where = tuple((~torch.isfinite(tensor)).nonzero()[0].tolist())
    return (
        f"{name}: found {tensor[where].item()} at {where}; "
        "remove or fill in these rows, for example with sklearn.impute.SimpleImputer"
    )


def as_problem(points: object, centers: object) -> tuple[Tensor, Tensor]:
    """Return points and centers with equal dtype, device, batch and number of features."""
    x, c = as_points("points", points), as_points("centers", centers)
    if x.device != c.device:
        raise ValueError(
            f"centers: found on device {c.device} with points on {x.device}; "
            f'move them with centers.to("{x.device}")'
        )
    if x.dtype != c.dtype:
        raise ValueError(
            f"centers: found dtype {c.dtype} with points of {x.dtype}; convert one of them"
        )
    if x.shape[:-2] != c.shape[:-2] or x.shape[-1] != c.shape[-1]:
        raise ValueError(
            f"centers: found shape {tuple(c.shape)} with points of shape {tuple(x.shape)}; "
            "batch and number of features must agree"
        )
    if c.shape[-2] > x.shape[-2]:
        raise ValueError(
            f"centers: found {c.shape[-2]} for {x.shape[-2]} points; use at most one per point"
        )
    return x, c


def largest_value(dtype: torch.dtype, n_features: int, n_rows: int = 1) -> float:
    """The largest value whose squares can be added: in `dtype` for a row, in float64 over rows."""
    most, double = torch.finfo(dtype).max, torch.finfo(torch.float64).max
    return float(
        min(1e-6 * most, most / (64 * n_features), double / (64 * n_features * n_rows)) ** 0.5
    )


def surely_in_range(rows: np.ndarray, n_rows: int, n_features: int) -> bool:
    """Would `check_range` accept these rows (m, d)? False where it has to look closer."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    span = float((high / 2 - low / 2).max())
    dtype = torch.float32 if rows.dtype == np.float32 else torch.float64
    return _least_span(dtype) < span < largest_value(dtype, n_features, n_rows)


def _least_span(dtype: torch.dtype) -> float:
    return 1e3 * float(torch.finfo(dtype).tiny) ** 0.5


def allowed_spans(dtype: torch.dtype, n_features: int, n_rows: int) -> tuple[float, float]:
    """Limits of half the range of the columns, for `check_range`."""
    return _least_span(dtype), largest_value(dtype, n_features, n_rows)


def check_range(name: str, rows: Tensor, n_rows: int = 1, n_features: int | None = None) -> None:
    """Raise `ValueError` if the squares of the values overflow or underflow.

    n_rows, n_features: how many squares are added up; by default those of one row.
    """
    still, d = rows.detach(), n_features or rows.shape[-1]
    spans = (still.amax(dim=-2) / 2 - still.amin(dim=-2) / 2).amax(dim=-1)  # of each problem
    least, most = allowed_spans(rows.dtype, d, n_rows)
    good = (spans > least) & (spans < most) | (spans == 0)
    if not good.all():
        span = spans[~good].flatten()[0].item()
        raise ValueError(
            f"{name}: found values that span {2 * span:.2g}, whose squares {rows.dtype} cannot "
            "hold; rescale them, for example with sklearn.preprocessing.StandardScaler"
        )


def check_unit(name: str, rows: Tensor) -> None:
    """Raise `ValueError` unless all rows are unit vectors, which spherical clustering needs."""
    error = (rows.norm(dim=-1) - 1).abs()
    if (worst := error.max().item()) > _slack(rows):
        raise ValueError(
            f"{name}: found a row whose norm differs from 1 by {worst:.2g}; "
            f"normalise first, {name} / {name}.norm(dim=-1, keepdim=True)"
        )


def check_zero_sum(name: str, rows: Tensor) -> None:
    """Raise `ValueError` unless the coordinates of each row sum to 0, which LayerNorm needs."""
    if (worst := rows.sum(dim=-1).abs().max().item()) > _slack(rows):
        raise ValueError(
            f"{name}: found a row whose coordinates sum to {worst:.2g}; LayerNorm needs 0, "
            f"use lloydformer.circuits.norms.zero_sum({name}) or RMSNorm"
        )


def _slack(rows: Tensor) -> float:
    """Tolerance for rounding errors."""
    return 8 * (rows.shape[-1] + 3) * torch.finfo(rows.dtype).eps


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return an integer of at least `least`, below 2^63; raises `ValueError` otherwise."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise ValueError(f"{name}: found {value!r}; pass an integer, {least} or more")
    if value >= 2**63:  # type: ignore[operator]
        raise ValueError(f"{name}: found {value!r}; pass an integer below 2^63")
    return int(value)  # type: ignore[call-overload]
