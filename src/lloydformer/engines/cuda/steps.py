"""What iterates on a GPU, whichever kernels do it."""

from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor


@runtime_checkable
class Steps(Protocol):
    """Iterations over some points for some work: see `Work` for what a step does.

    Attributes
    ----------
    at_once : int
        Iterations before the host looks at the stop rule for the first time, if there are not
        more; a quarter of them otherwise. Those that are superfluous cost their launches.
    """

    at_once: int

    def begin(self, centers: Tensor, tolerance: float) -> None:
        """Start from these centers (k, d), in float64."""
        ...

    def step(self) -> None:
        """Put one iteration on the stream."""
        ...

    def assign(self) -> None:
        """Only labels, sums and masses, from the centers in `Work.seen`."""
        ...

    def land(self, *, last: bool) -> None:
        """If the stop rule holds, or after the `last` iteration, label the points a last time.

        The centers are rounded before, as a user gets them. Then `Work.status[2]` is the status
        of the iterations, and the sum of w d^2 is measured. If iterations are to go on, they pause.
        Kernels that cannot do it do nothing: then the host asks for the last labels.
        """
        ...

    def refill(self, masses: np.ndarray, distances: Tensor) -> bool:
        """End an iteration that left clusters empty: each gets the farthest point that is left.

        It does nothing and returns False if there are too many of them, or no kernel for it.

        Parameters
        ----------
        masses : ndarray of shape (k,)
            `Work.masses`.
        distances : Tensor of shape (n,)
            Overwritten.
        """
        ...

    def measure(self, distances: Tensor) -> Tensor:
        """Squared distances (n,) to the assigned centers in `Work.seen`; the sum of w d^2, ()."""
        ...
