"""The device of the points: the one that the user wants, or the host if that is too small."""

from typing import Any

import torch
from torch import Tensor

from lloydformer.data.host_memory import is_file_mapping, pinnable_memory
from lloydformer.engines.cuda import map_host_rows

# Bytes that a fit on a GPU takes for each point beside the rows and their copy in float16: 12 to 21
# were measured, 39 with 1,000 centers of 128 features (docs/gpu.md).
_BYTES_A_POINT = 48

# Bytes of the rows and of their copy in float16, for each byte of the rows: a half more in float32,
# and some for columns that are padded. Chosen by hand.
_ROWS_AND_COPY = 1.6


def move_to_device(points: Tensor, name: Any) -> Tensor:
    """Return the points on a device; the CPU tensor if the GPU has too little free memory."""
    device = require_device(name)
    needed = _ROWS_AND_COPY * points.nbytes + _BYTES_A_POINT * len(points)
    # Rows that do not fit stay on the host, and are streamed to the GPU in blocks.
    if device.type == "cuda" and not points.is_cuda and needed > free_memory(device):
        return points
    return points.to(device)


def can_pin(points: Tensor) -> bool:
    """Return True for rows in memory, and for those of a file that is not too large.

    Pinning the mapping of a file loads all of it.
    """
    return not is_file_mapping(points.data_ptr()) or points.nbytes <= pinnable_memory()


def keep_on_host(points: Tensor, device: torch.device, n_clusters: int) -> Tensor:
    """Return points that a GPU reads from the host, if their float16 copy fits into the GPU."""
    # The GPU screens by its copy in float16, and fetches only the rows that it cannot decide.
    free = free_memory(device) - _BYTES_A_POINT * len(points)
    readable = map_host_rows(points, device, n_clusters, free)
    return points if readable is None else readable


def free_memory(device: torch.device) -> int:
    """Return the number of bytes that torch can still allocate."""
    free, total = torch.cuda.mem_get_info(device)
    # Torch keeps memory that its tensors have released; it is free for new tensors.
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total)
    return min(free + unused, allowed - torch.cuda.memory_allocated(device))


def check_on_cpu(estimator: Any, data: str) -> None:
    """Raise `ValueError` for another device than the CPU, for data that only the CPU reads."""
    if estimator.device is not None and str(estimator.device) != "cpu":
        raise ValueError(
            f"device: found {estimator.device!r} for {data}, which is fitted on the CPU; leave it "
            "at None"
        )


def requested_device(estimator: Any) -> Any:
    """Return the device that arrays are copied to; None if they stay where they are."""
    # engine="cuda" alone asks for a GPU: the engine reads no rows of the CPU.
    if estimator.device is None and estimator.engine == "cuda":
        return "cuda"
    return estimator.device


def parse_device(name: Any) -> torch.device:
    """Return the device; raises `ValueError` for an unknown one, or one that holds no numbers."""
    try:
        device = torch.device(name)
    except RuntimeError as error:
        words = str(error).split("\n")[0]
        raise ValueError(f"device: found {name!r} ({words}); pass cpu or cuda") from None
    if device.type == "meta":
        raise ValueError(f"device: found {name!r}, which holds no numbers; pass cpu or cuda")
    return device


def require_device(name: Any) -> torch.device:
    """Return the device; raises `ValueError` also for one that this machine does not have."""
    device = parse_device(name)
    try:
        # Only an allocation shows that a device exists; and "cuda" becomes one with a number.
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # the latter from a torch without CUDA
        words = str(error).split("\n")[0]
        raise ValueError(f"device: found {name!r}, which is not available ({words})") from None
