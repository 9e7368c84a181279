"""Soft k-means on a GPU: iterations that do not wait for the host."""

import torch

from lloydformer.engines.cuda.device_loop import DeviceLoop
from lloydformer.engines.cuda.open_points import PointsOnGpu
from lloydformer.engines.cuda.partial_sums import adding
from lloydformer.engines.cuda.soft import FAINT, mixing
from lloydformer.plans.contract import Ran
from lloydformer.plans.soft import SoftIterations


def soft_iterations(opened: PointsOnGpu, task: SoftIterations) -> Ran | None:
    """Run the task; None if there are no kernels for it."""
    seen = task.centers.to(opened.layout.dtype).clone(memory_format=torch.contiguous_format)
    mixed = mixing(opened, seen, task.inverse_temperature)
    if mixed is None:
        return None
    add, sums = adding(mixed.partial)
    loop = DeviceLoop(task, opened, sums, FAINT)
    opened.labelled = False

    def iterate() -> None:
        seen.copy_(loop.seen)
        for launch in (*mixed.launches, add):
            launch()

    return loop.run(iterate)
