"""The CUDA engine: kernels for points in the memory of a GPU.

It may import from `plans`, `data`, `numerics` and the chunked engine, whose session it extends.
Nothing here is imported unless there are points on a GPU: other rooms use the functions below.
Begin with the tables of folds and tasks in `engine.py`; then `lloyd_state.py`, which says what an
iteration does, and `lloyd.py`, where the host runs iterations. docs/notes/gpu-kernels.md has the
reasoning.

- `kernels/`: CUDA C++ for Hopper, compiled at run time (`nvrtc.py`) and started by `launch.py`.
- `portable/`: Lloyd's algorithm in Triton, for every NVIDIA GPU since Ampere.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lloydformer.data.column_statistics import ColumnStatistics

if TYPE_CHECKING:
    from lloydformer.engines.cuda.engine import Cuda


def load_cuda_engine() -> "Cuda":
    """Return the engine, imported when it is first used."""
    from lloydformer.engines.cuda.engine import Cuda

    return Cuda()


def survey_on_gpu(rows: Tensor) -> ColumnStatistics | None:
    """Return ranges and sums of the columns, by one pass on a GPU; None without a kernel."""
    from lloydformer.engines.cuda.backend import CUDA_CPP, choose_backend
    from lloydformer.engines.cuda.launch import ensure_context
    from lloydformer.engines.cuda.survey import survey_rows

    if choose_backend(rows.device) != CUDA_CPP or not rows.is_contiguous():
        return None
    with torch.cuda.device(rows.device):
        ensure_context(rows.device)
        return survey_rows(rows)


def map_host_rows(points: Tensor, device: torch.device, k: int, free: int) -> Tensor | None:
    """Return points that stay on the host as a tensor of a GPU: see `pinned_memory`."""
    from lloydformer.engines.cuda.pinned_memory import map_host_rows

    return map_host_rows(points, device, k, free)


def pin_rows(points: Tensor, device: torch.device) -> object | None:
    """Pin rows on the host; keep the returned object while the GPU reads: see `pinned_memory`."""
    from lloydformer.engines.cuda.pinned_memory import pin_rows

    return pin_rows(points, device)
