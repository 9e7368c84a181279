"""Where points live: on the device that the user wants, or on the host if that is too small."""

from typing import Any

import torch
from torch import Tensor

from lloydformer.data.host_memory import in_file, lockable_memory
from lloydformer.engines.cuda import rows_on_host

_BYTES_A_POINT = 48
"""What a fit on a GPU takes for each point beside the rows and their copy in half precision."""


def folding_device(estimator: Any, points: Tensor) -> torch.device:
    """Where folds run: the device of the points, or the one that they were too large for."""
    wanted = wanted_device(estimator)
    return points.device if wanted is None or points.is_cuda else available_device(wanted)


def moved(points: Tensor, name: Any) -> Tensor:
    """The points on a device; the CPU tensor if the GPU has too little free memory."""
    device = available_device(name)
    needed = 1.6 * points.nbytes + _BYTES_A_POINT * len(points)
    if device.type == "cuda" and not points.is_cuda and needed > free_memory(device):
        return points
    return points.to(device)


def can_be_pinned(points: Tensor) -> bool:
    """Rows in memory, and those of a file that is not too large: pinning loads all of it."""
    return not in_file(points.data_ptr()) or points.nbytes <= lockable_memory()


def kept_on_host(points: Tensor, device: torch.device, n_clusters: int) -> Tensor:
    """Points that a GPU is too small for, read from where they are if their copy fits there."""
    free = free_memory(device) - _BYTES_A_POINT * len(points)
    there = rows_on_host(points, device, n_clusters, free)
    return points if there is None else there


def free_memory(device: torch.device) -> int:
    """Bytes that torch can still allocate."""
    free, total = torch.cuda.mem_get_info(device)
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total)
    return min(free + unused, allowed - torch.cuda.memory_allocated(device))


def check_on_cpu(estimator: Any, data: str) -> None:
    """Refuse another device than the CPU for data that only the CPU reads."""
    if estimator.device is not None and str(estimator.device) != "cpu":
        raise ValueError(
            f"device: found {estimator.device!r} for {data}, which is fitted on the CPU; leave it "
            "at None"
        )


def wanted_device(estimator: Any) -> Any:
    """Where arrays are copied to; None: they stay where they are."""
    if estimator.device is None and estimator.engine == "cuda":
        return "cuda"
    return estimator.device


def device_of(name: Any) -> torch.device:
    """Return the device; raises `ValueError` for an unknown one, or one that holds no numbers."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        words = str(error).split("\n")[0]
        raise ValueError(f"device: found {name!r} ({words}); pass cpu or cuda") from None
    if device.type == "meta":
        raise ValueError(f"device: found {name!r}, which holds no numbers; pass cpu or cuda")
    return device


def available_device(name: Any) -> torch.device:
    """Return the device; raises `ValueError` also for one that this machine does not have."""
    device = device_of(name)
    try:
        return torch.empty(0, device=device).device  # "cuda" is one with a number
    except (RuntimeError, AssertionError) as error:
        words = str(error).split("\n")[0]
        raise ValueError(f"device: found {name!r}, which is not here ({words})") from None
