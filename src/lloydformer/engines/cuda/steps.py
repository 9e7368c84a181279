"""What iterates on a GPU, whichever kernels do it."""

from typing import Protocol, runtime_checkable

from torch import Tensor


@runtime_checkable
class Steps(Protocol):
    """Iterations over some points for some work: see `Work` for what a step does.

    Attributes
    ----------
    at_once : int
        Iterations before the host looks at the stop rule for the first time. Those that are
        superfluous cost their launches.
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

    def measure(self, distances: Tensor) -> Tensor:
        """Squared distances (n,) to the assigned centers in `Work.seen`; the sum of w d^2, ()."""
        ...
