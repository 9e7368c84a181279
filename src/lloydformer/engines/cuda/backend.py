"""Which kernels a GPU runs: CUDA C++ on Hopper, Triton on other GPUs since Ampere, or none."""

import importlib.util
from functools import cache

import torch

from lloydformer.engines.cuda.nvrtc import CompileError, kernel

CUDA_CPP, TRITON, TORCH = "CUDA C++", "Triton", "torch"
_HOPPER, _AMPERE = (9, 0), (8, 0)


@cache
def backend(device: torch.device) -> str:
    """The kind of kernels for a device: `CUDA_CPP`, `TRITON` or `TORCH`."""
    return _found(device)[0]


@cache
def _found(device: torch.device) -> tuple[str, str]:
    """The kind of kernels, and why it is not a better one."""
    capability = torch.cuda.get_device_capability(device)
    if torch.version.hip is not None or capability < _AMPERE:
        return TORCH, "no kernels for this GPU"
    why = "kernels in CUDA C++ are for compute capability 9.0"
    if capability == _HOPPER:
        try:
            kernel("prepare.cu", "prepare", device)
            return CUDA_CPP, ""
        except (CompileError, OSError, RuntimeError) as error:
            why = f"CUDA C++ cannot be compiled ({str(error).splitlines()[0]})"
    if importlib.util.find_spec("triton") is None:
        return TORCH, f"{why}; Triton is not installed"
    return TRITON, why


def described(device: torch.device) -> str:
    """A line for `lloydformer doctor`."""
    kind, why = _found(device)
    return f"{kind} kernels" + (f" ({why})" if why else "")
