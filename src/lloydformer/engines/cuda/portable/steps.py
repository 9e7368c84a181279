"""The portable kernels as the session calls them."""

import numpy as np
from torch import Tensor

from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.portable.lloyd import PortableLloyd
from lloydformer.engines.cuda.work import Work


class PortableSteps:
    """Iterations in Triton: see `engines.cuda.steps.Steps`."""

    at_once = 8

    def __init__(self, points: Points, work: Work) -> None:
        self._work, self._lloyd = work, PortableLloyd(points, work)
        self.step, self.assign = self._lloyd.step, self._lloyd.assign

    def begin(self, centers: Tensor, tolerance: float) -> None:
        self._work.begin(centers, tolerance)

    def land(self, *, last: bool) -> None:
        """No kernel for it."""

    def refill(self, masses: np.ndarray, distances: Tensor) -> bool:
        return False

    def measure(self, distances: Tensor) -> Tensor:
        return self._lloyd.measure(distances)[1]
