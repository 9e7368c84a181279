"""The CUDA engine: kernels for points in the memory of a GPU.

Nothing here is imported unless there are points on a GPU.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lloydformer.data.extent import Survey

if TYPE_CHECKING:
    from lloydformer.engines.cuda.engine import Cuda


def cuda_engine() -> "Cuda":
    """The engine, imported when it is first used."""
    from lloydformer.engines.cuda.engine import Cuda

    return Cuda()


def survey_on_gpu(rows: Tensor) -> Survey | None:
    """What one pass finds of rows on a GPU; None if there is no kernel for it."""
    from lloydformer.engines.cuda.backend import CUDA_CPP, backend
    from lloydformer.engines.cuda.launches import make_ready
    from lloydformer.engines.cuda.passes import survey

    if backend(rows.device) != CUDA_CPP or not rows.is_contiguous():
        return None
    with torch.cuda.device(rows.device):
        make_ready(rows.device)
        return survey(rows)


def rows_on_host(points: Tensor, device: torch.device, n_clusters: int, free: int) -> Tensor | None:
    """Points that stay on the host as a tensor of a GPU: see `host_rows`."""
    from lloydformer.engines.cuda.host_rows import rows_on_host

    return rows_on_host(points, device, n_clusters, free)


def pinned(points: Tensor, device: torch.device) -> object | None:
    """What lets a GPU fetch rows from where they are, as long as it is kept: see `host_rows`."""
    from lloydformer.engines.cuda.host_rows import pinned

    return pinned(points, device)
