"""Checks of arguments; every error names the argument, what was found and what to do."""

import math
from numbers import Real

import numpy as np
import torch
from torch import Tensor

FLOATS = (torch.float32, torch.float64)


class ArgumentError(ValueError):
    """An error about one argument, whose name callers may replace by their own.

    The command line knows X as a file, and a parameter as an option. The fields are the arguments
    of the exception, so that it can be pickled: workers of a cluster raise it as well.

    Attributes
    ----------
    argument : str
        The name of the argument.
    problem : str
        What was found, and what to do.
    """

    def __init__(self, argument: str, problem: str) -> None:
        super().__init__(argument, problem)
        self.argument, self.problem = argument, problem

    def __str__(self) -> str:
        return f"{self.argument}: {self.problem}"


class RefusedArgumentError(ArgumentError):
    """An optional argument that cannot be used here; `problem` is the reason."""

    def __str__(self) -> str:
        return f"{super().__str__()}; leave it at None"


def require(condition: bool, argument: str, found: object, repair: str) -> None:
    """Raise a ValueError with argument, value found and repair, unless the condition holds."""
    if not condition:
        raise ValueError(f"{argument}: found {found!r}; {repair}")


def require_positive(argument: str, value: float) -> None:
    """Raise a ValueError unless the value is a positive finite number."""
    number = isinstance(value, Real) and not isinstance(value, bool)
    require(number and 0 < value < math.inf, argument, value, "pass a positive finite number")


def require_fraction(argument: str, value: float) -> None:
    """Raise a ValueError unless the value is a fraction from 0 to below 1."""
    fraction = isinstance(value, Real) and 0 <= value < 1
    require(fraction, argument, value, "pass a fraction from 0 to below 1")


def refuse_masked(name: str, values: object) -> None:
    """Raise a ValueError for masked values: other functions would read what the mask hides."""
    if not isinstance(values, np.ma.MaskedArray):
        return
    mask = np.ma.getmaskarray(values)
    count = int(mask.sum())
    if count == 0:
        return
    place = np.argwhere(mask)[0].tolist()
    where, repair = f"at {tuple(place)}", "pass an array without a mask"
    if mask.ndim == 1:
        where = f"in row {place[0]}"
    if mask.ndim == 2:
        where = f"in row {place[0]}, column {place[1]}"
        kept = f"{name}[~np.ma.getmaskarray({name}).any(axis=1)]"
        repair = f"leave out their rows, {kept}, or fill them in"
    raise ArgumentError(
        name, f"found {count:,} masked value{'s' * (count > 1)}, the first {where}; {repair}"
    )


def as_points(name: str, value: object, *, missing: bool = False) -> Tensor:
    """Return a finite float tensor of rows, (m, d) or (b, m, d), from a tensor or an array.

    missing: NaN is a missing value, of which a row may have some.
    """
    tensor = as_rows(name, value)
    if missing:
        gaps = tensor.isnan()
        check_finite(name, tensor.masked_fill(gaps, 0.0))
        if bool(gaps.all(dim=-1).any()):
            row = gaps.all(dim=-1).nonzero()[0, -1].item()
            raise ValueError(f"{name}: found no value in row {row}; remove rows without any value")
    else:
        check_finite(name, tensor)
    return tensor


def as_rows(name: str, value: object) -> Tensor:
    """Return a float tensor of rows, (m, d) or (b, m, d); its values are not examined."""
    if isinstance(value, Tensor):
        tensor = value
    else:
        refuse_masked(name, value)
        try:
            tensor = torch.tensor(np.asarray(value))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{name}: found {type(value).__name__}, which is not an array of numbers "
                f"({error}); pass a tensor or an array"
            ) from None
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
        where = tuple((~torch.isfinite(tensor)).nonzero()[0].tolist())
        raise ValueError(
            f"{name}: found {tensor[where].item()} at {where}; "
            "remove or fill in these rows, for example with sklearn.impute.SimpleImputer"
        )


def as_problem(points: object, centers: object, *, missing: bool = False) -> tuple[Tensor, Tensor]:
    """Return points and centers with equal dtype, device, batch and number of features.

    missing: points may have missing values (NaN).
    """
    x, c = as_points("points", points, missing=missing), as_points("centers", centers)
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
    """Return the largest value whose squares can be summed.

    Those of a row are summed in `dtype`, those of all rows in float64.
    """
    # |x - c|^2 <= 4 d v^2 for values up to v; 64 leaves room for the terms of its expansion and for
    # bounds. 1e-6 of the largest float, for few features, was chosen by hand.
    most, double = torch.finfo(dtype).max, torch.finfo(torch.float64).max
    return float(
        min(1e-6 * most, most / (64 * n_features), double / (64 * n_features * n_rows)) ** 0.5
    )


def allowed_spans(dtype: torch.dtype, n_features: int, n_rows: int) -> tuple[float, float]:
    """Return the limits of half the range of the columns, for `check_range`."""
    # Squares of a thousandth of the least span have all their digits: differences within a cluster
    # may be that much smaller than the range.
    least = 1e3 * float(torch.finfo(dtype).tiny) ** 0.5
    return least, largest_value(dtype, n_features, n_rows)


def is_surely_in_range(rows: np.ndarray, n_rows: int, n_features: int) -> bool:
    """Return whether `check_range` accepts rows (m, d); False if it must examine more closely.

    For a single array this is faster: NumPy's calls cost less than those of torch.
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    span = float((high / 2 - low / 2).max())
    dtype = torch.float32 if rows.dtype == np.float32 else torch.float64
    least, most = allowed_spans(dtype, n_features, n_rows)
    return least < span < most


def check_range(name: str, rows: Tensor, n_rows: int = 1, n_features: int | None = None) -> None:
    """Raise `ValueError` if the squares of the values overflow or underflow.

    n_rows, n_features: how many squares are added up; by default those of one row.
    """
    values, d = rows.detach(), n_features or rows.shape[-1]
    # half of each first: the difference of the largest floats would overflow
    spans = (values.amax(dim=-2) / 2 - values.amin(dim=-2) / 2).amax(dim=-1)  # of each problem
    least, most = allowed_spans(rows.dtype, d, n_rows)
    good = (spans > least) & (spans < most) | (spans == 0)
    if not good.all():
        span = spans[~good].flatten()[0].item()
        raise ArgumentError(
            name,
            f"found values that span {2 * span:.2g}, whose squares {rows.dtype} cannot hold; "
            "rescale them, for example with sklearn.preprocessing.StandardScaler",
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
    """Return the tolerance of a sum over the d coordinates of a row of length 1."""
    # such a sum is right to about (d + 3) eps; the factor 8 was chosen by hand
    return 8 * (rows.shape[-1] + 3) * torch.finfo(rows.dtype).eps


def check_count(name: str, value: object, least: int = 1) -> int:
    """Return an integer of at least `least`, below 2^63; raise `ValueError` otherwise."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or value < least:  # type: ignore[operator]
        raise ValueError(f"{name}: found {value!r}; pass an integer, {least} or more")
    if value >= 2**63:  # type: ignore[operator]
        raise ValueError(f"{name}: found {value!r}; pass an integer below 2^63")
    return int(value)  # type: ignore[call-overload]
