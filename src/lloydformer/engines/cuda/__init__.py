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
