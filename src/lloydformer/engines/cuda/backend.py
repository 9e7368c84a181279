"""Choose the kernels for a GPU: CUDA C++ on Hopper, Triton since Ampere, else plain PyTorch."""

import importlib.util
from functools import cache

import torch

from lloydformer.engines.cuda.nvrtc import CompileError, load_kernel

CUDA_CPP, TRITON, TORCH = "CUDA C++", "Triton", "torch"

# The C++ kernels use wgmma, which exists on compute capability 9.0 alone (Blackwell dropped it).
# The tiles of the Triton kernels take up to 99 KiB of shared memory; GPUs before Ampere have 64.
_HOPPER, _AMPERE = (9, 0), (8, 0)


def choose_backend(device: torch.device) -> str:
    """Return the kind of kernels for a device: `CUDA_CPP`, `TRITON` or `TORCH`."""
    return _choose(device)[0]


def describe_backend(device: torch.device) -> str:
    """Return a line for `lloydformer doctor`: the kernels, and why there are no better ones."""
    kind, why = _choose(device)
    return f"{kind} kernels" + (f" ({why})" if why else "")


@cache
def _choose(device: torch.device) -> tuple[str, str]:
    """Return the kind of kernels, and the reason why it is not a better one."""
    capability = torch.cuda.get_device_capability(device)
    if torch.version.hip is not None or capability < _AMPERE:
        return TORCH, "no kernels for this GPU"
    why = "kernels in CUDA C++ are for compute capability 9.0"
    if capability == _HOPPER:
        # Compile one kernel: a missing NVRTC or driver shows here, before any fit relies on it.
        try:
            load_kernel("prepare.cu", "prepare", device)
            return CUDA_CPP, ""
        except (CompileError, OSError, RuntimeError) as error:
            why = f"CUDA C++ cannot be compiled ({str(error).splitlines()[0]})"
    if importlib.util.find_spec("triton") is None:
        return TORCH, f"{why}; Triton is not installed"
    return TRITON, why
