"""Weights in units of a power of two: their sums and products neither overflow nor vanish."""

import numpy as np
from jaxtyping import Float

_TINY = np.finfo(np.float64).tiny
_SMALLEST = np.nextafter(0.0, 1.0)

Unit = Float[np.ndarray, "*b"] | float


def in_units(
    name: str, weights: Float[np.ndarray, "*b n"]
) -> tuple[Float[np.ndarray, "*b n"], Unit]:
    """Divide weights by a power of two, so that the largest is at least 1 and below 2.

    The division is exact, so sums that are linear in the weights are the same to the last bit, in
    the other unit. It raises `ValueError` for weights whose ratio float64 cannot hold.

    Parameters
    ----------
    name : str
        The argument, for the error.
    weights : ndarray of shape (*b, n)
        In float64, finite, not negative; for each problem of a batch.

    Returns
    -------
    weights : ndarray of shape (*b, n)
        In the new unit. Positive weights stay positive.
    unit : float, or ndarray of shape (*b,)
        The power of two; one for each problem.
    """
    largest = weights.max(axis=-1)
    exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1] - 1
    unit = np.ldexp(1.0, exponent)
    if not exponent.any():
        return weights, unit
    scaled = np.ldexp(weights, -exponent[..., None])
    if (exponent > 0).any():
        lost = (weights >= _TINY) & (scaled < _TINY)
        if lost.any():
            raise ValueError(
                f"{name}: found {weights[lost][0]:.2g} beside {largest.max():.2g}, a ratio that "
                "float64 cannot hold; leave out such small weights, or set them to 0"
            )
        np.maximum(scaled, _SMALLEST, where=weights > 0, out=scaled)
    return scaled, unit


def unit_exponent(largest: float) -> int:
    """The exponent of the unit of weights, the largest of which is this one."""
    return int(np.frexp(largest)[1]) - 1


def divided(weights: Float[np.ndarray, " n"], exponent: int) -> Float[np.ndarray, " n"]:
    """Weights over 2 to this power, a copy. Positive weights stay positive."""
    scaled = np.ldexp(weights, -exponent)
    return np.maximum(scaled, _SMALLEST, where=weights > 0, out=scaled)


def check_ratio(name: str, smallest: float, largest: float) -> None:
    """Raise `ValueError` if the smallest weight above 0 is lost in the unit of the largest."""
    if smallest >= _TINY > np.ldexp(smallest, -unit_exponent(largest)):
        raise ValueError(
            f"{name}: found {smallest:.2g} beside {largest:.2g}, a ratio that float64 cannot hold; "
            "leave out such small weights, or set them to 0"
        )


def too_heavy(unit: float) -> ValueError:
    """The error for weights in this unit whose sums with squared distances overflow."""
    most = min(2.0 * unit, np.finfo(np.float64).max)
    return ValueError(
        f"sample_weight: found weights up to {most:.2g}; float64 cannot hold their sum with "
        "squared distances; divide them by their maximum"
    )
