"""Rows divided by their norms, also where squares overflow or vanish."""

from jaxtyping import Float
from torch import Tensor


def directions(name: str, rows: Float[Tensor, "*b m d"]) -> Float[Tensor, "*b m d"]:
    """Return rows in float64 as unit vectors; rows of zeros raise, naming the argument."""
    norms = rows.norm(dim=-1, keepdim=True)
    if not bool(((norms > 1e-150) & (norms < 1e150)).all()):
        largest = rows.abs().amax(dim=-1, keepdim=True)
        if bool((largest == 0).any()):
            raise ValueError(f"{name}: found a row of zeros, which has no direction; use another")
        rows = rows / largest
        norms = rows.norm(dim=-1, keepdim=True)
    return rows / norms
