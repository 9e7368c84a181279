"""Lloyd's iterations by the CUDA C++ kernels for Hopper."""

import torch

from lloydformer.engines.cuda.hopper.few import SmallSteps, TinySteps
from lloydformer.engines.cuda.hopper.many import LargeSteps
from lloydformer.engines.cuda.hopper.shared import in_range
from lloydformer.engines.cuda.points import Points
from lloydformer.engines.cuda.steps import Steps
from lloydformer.engines.cuda.work import Work

_TINY_FEATURES, _TINY_NUMBERS = 4, 24
_SMALL_CENTERS, _SMALL_FEATURES = 16, 64
_LARGE_FEATURES, _LARGE_CENTERS = 256, 4096
_FEWEST_OF_A_PART = 384
"""Centers of a part in shared memory, with the most features."""


def hopper_steps(points: Points, work: Work) -> Steps | None:
    """The family for this problem; None if there is none."""
    d, k = points.n_features, work.n_clusters
    plain = points.rows.dtype == torch.float32 and points.weights is None and in_range(points)
    whole = d not in (2, 4) or points.rows.data_ptr() % (4 * d) == 0  # rows are read as vectors
    if d <= _TINY_FEATURES and k * d <= _TINY_NUMBERS and plain and whole:
        return TinySteps(points, work)
    if k <= _SMALL_CENTERS and d <= _SMALL_FEATURES:
        return SmallSteps(points, work)
    if d <= _LARGE_FEATURES and k <= _LARGE_CENTERS:
        return LargeSteps(points, work)
    return None


def copied_bytes(d: int, k: int) -> int:
    """Bytes of a point, at most, in the copy that its family reads and in what is found of it."""
    if k <= _SMALL_CENTERS and d <= _SMALL_FEATURES:
        return 2 * (32 if d <= 32 else 64)
    return 2 * (-(-d // 64) * 64) + 8 * -(-k // _FEWEST_OF_A_PART)
